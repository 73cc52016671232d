"""`mxrt.ray` on a local cluster of three nodes, in an environment of its own (`make test-ray`)."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ray
from ray.cluster_utils import Cluster

sys.path.insert(0, str(Path(__file__).parent.parent))
import mxrt
import mxrt.ray
from support import DIGITS


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "object_store_memory": 200 << 20})
    for _ in range(2):
        made.add_node(num_cpus=2, object_store_memory=200 << 20)
    path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    ray.init(address=made.address, logging_level="error", runtime_env={"env_vars": path})
    yield made
    ray.shutdown()
    made.shutdown()


def rows(count: int) -> np.ndarray:
    return np.random.default_rng(1).random((count, 1, 8, 8), "float32")


def wanted(given: np.ndarray) -> np.ndarray:
    symbol = DIGITS / "digits_cnn-symbol.json"
    net = mxrt.gluon.SymbolBlock.imports(str(symbol), ["data"], str(DIGITS / "digits_cnn-0000.params"))
    return net(mxrt.nd.array(given)).asnumpy()


def dataset(given: np.ndarray) -> Any:
    import ray.data

    return ray.data.from_items([{"id": i, "data": row} for i, row in enumerate(given)], override_num_blocks=8)


def collected(made: Any) -> tuple[list[int], np.ndarray]:
    table = made.take_all()
    [output] = [key for key in table[0] if key.endswith("output")]
    return [row["id"] for row in table], np.stack([np.asarray(row[output], "float32") for row in table])


def test_a_dataset_gets_the_answers_of_calls_in_order(cluster: Cluster) -> None:
    given = rows(500)
    ids, found = collected(mxrt.ray.predict(dataset(given), DIGITS, ordered=True, rows=50, copies=2))
    assert ids == list(range(500))
    np.testing.assert_allclose(found, wanted(given), rtol=1e-5, atol=2e-5)


def test_bad_rows_go_aside_with_their_errors(cluster: Cluster, tmp_path: Path) -> None:
    given = list(rows(40))
    given[7] = np.zeros((2, 8, 8), "float32")
    made = mxrt.ray.predict(dataset(given), DIGITS, bad_rows=tmp_path, copies=1, rows=8)
    ids, _ = collected(made.materialize())
    assert sorted(ids) == [i for i in range(40) if i != 7]
    bad = [json.loads(line) for file in tmp_path.glob("*.jsonl") for line in file.read_text().splitlines()]
    assert [one["id"] for one in bad] == [7] and "wanted (1, 1, 8, 8)" in bad[0]["mxrt_error"]


def test_written_parts_are_not_computed_again(cluster: Cluster, tmp_path: Path) -> None:
    given = rows(100)
    mxrt.ray.predict(dataset(given), DIGITS, to=tmp_path, part_rows=30, copies=1)
    parts = sorted(tmp_path.glob("part-*.parquet"))
    assert len(parts) == 4
    before = {part: part.stat().st_mtime_ns for part in parts}
    parts[-1].unlink()
    made = mxrt.ray.predict(dataset(given), DIGITS, to=tmp_path, part_rows=30, copies=1)
    assert [part.stat().st_mtime_ns for part in parts[:-1]] == [before[part] for part in parts[:-1]]
    ids, found = collected(made)
    np.testing.assert_allclose(found, wanted(given[ids]), rtol=1e-5, atol=2e-5)
    assert sorted(ids) == list(range(100))
    with pytest.raises(mxrt.base.MXNetError, match="another model or part_rows"):
        mxrt.ray.predict(dataset(given), DIGITS, to=tmp_path, part_rows=20, copies=1)


def test_records_with_images_and_bad_ones_in_parts(cluster: Cluster, tmp_path: Path) -> None:
    images = [np.random.default_rng(i).integers(0, 255, (8, 8, 1), dtype="uint8") for i in range(20)]
    for part in range(2):
        writer = mxrt.recordio.MXRecordIO(str(tmp_path / f"{part}.rec"), "w")
        for i in range(part * 10, part * 10 + 10):
            header = mxrt.recordio.IRHeader(0, float(i % 3), i, 0)
            good = mxrt.recordio.pack_img(header, images[i], img_fmt=".png")
            writer.write(mxrt.recordio.pack(header, b"no image") if i == 13 else good)
        writer.close()

    def decoded(batch: dict[str, Any]) -> dict[str, Any]:
        made = [mxrt.image.imdecode(image, flag=0).asnumpy() for image in batch["image"]]
        return {"data": np.stack([image.transpose(2, 0, 1) / np.float32(255) for image in made])}

    records = mxrt.ray.read_records([tmp_path / "0.rec", tmp_path / "1.rec"])
    made = mxrt.ray.predict(
        records, DIGITS, preprocess=decoded, to=tmp_path / "out", part_rows=8, copies=1, bad_rows=tmp_path / "bad"
    )
    ids, found = collected(made)
    assert sorted(ids) == [i for i in range(20) if i != 13]
    given = np.stack([images[i].transpose(2, 0, 1) / np.float32(255) for i in ids])
    np.testing.assert_allclose(found, wanted(given), rtol=1e-5, atol=2e-5)
    [bad] = [json.loads(line) for line in (tmp_path / "bad" / "bad-000001.jsonl").read_text().splitlines()]
    assert (bad["id"], bad["label"]) == (13, 1.0) and "Decoding failed" in bad["mxrt_error"]


def test_a_deployment_computes_on_its_cores_and_survives_its_replicas(cluster: Cluster) -> None:
    from ray import serve

    handle = serve.run(mxrt.ray.deployment(DIGITS, cores=2, copies=2), name="digits", route_prefix=None)
    given = rows(1)
    want = wanted(given)

    def ask(_: int) -> bool:
        made = mxrt.ray.call(handle, {"data": given}, timeout=60, tries=20)
        return all(value.tobytes() == want.tobytes() for value in made.values())

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(200)))
        from ray.util.state import list_actors

        alive = [one for one in list_actors() if "ServeReplica" in one.class_name and one.state == "ALIVE"]
        running = [pool.submit(ask, i) for i in range(400)]
        os.kill(alive[0].pid, signal.SIGKILL)
        assert all(one.result() for one in running)
        # The head is paused: calls that know their replicas go on without it.
        names = Path("/proc").glob("[0-9]*/comm")
        [head] = [int(one.parent.name) for one in names if one.read_text() == "gcs_server\n"]
        os.kill(head, signal.SIGSTOP)
        try:
            assert all(pool.map(ask, range(100)))
        finally:
            os.kill(head, signal.SIGCONT)
        # A node dies, with the replica that it may have.
        running = [pool.submit(ask, i) for i in range(400)]
        cluster.remove_node(cluster.list_all_nodes()[-1], allow_graceful=False)
        assert all(one.result() for one in running)
    with pytest.raises(Exception, match="got the inputs"):
        mxrt.ray.call(handle, {"date": given}, timeout=60)
    serve.delete("digits")


def test_a_deployment_joins_requests_to_batches(cluster: Cluster) -> None:
    from ray import serve

    handle = serve.run(mxrt.ray.deployment(DIGITS, cores=2, copies=1, batch=8), name="joined", route_prefix=None)
    given = rows(64)
    want = wanted(given)

    def ask(at: int) -> np.ndarray:
        [found] = mxrt.ray.call(handle, {"data": given[at : at + 1]}, timeout=60, tries=20).values()
        return found[0]

    with ThreadPoolExecutor(16) as pool:
        np.testing.assert_allclose(np.stack(list(pool.map(ask, range(64)))), want, rtol=1e-5, atol=2e-5)
    serve.shutdown()

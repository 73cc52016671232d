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

pytestmark = pytest.mark.filterwarnings("default")


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
    np.testing.assert_allclose(found, wanted(given), rtol=1e-5)


def test_bad_rows_go_aside_with_their_errors(cluster: Cluster, tmp_path: Path) -> None:
    given = list(rows(40))
    given[7] = np.zeros((1, 4, 16), "float32")
    made = mxrt.ray.predict(dataset(given), DIGITS, bad_rows=tmp_path, copies=1, rows=8)
    ids, _ = collected(made.materialize())
    assert sorted(ids) == [i for i in range(40) if i != 7]
    bad = [json.loads(line) for file in tmp_path.glob("*.jsonl") for line in file.read_text().splitlines()]
    assert [one["row"]["id"] for one in bad] == [7] and bad[0]["error"]


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
    np.testing.assert_allclose(found, wanted(given[ids]), rtol=1e-5)
    assert sorted(ids) == list(range(100))


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
    with pytest.raises(Exception, match="got the inputs"):
        mxrt.ray.call(handle, {"date": given}, timeout=60)
    serve.shutdown()

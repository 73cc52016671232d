"""`mxrt serve --sagemaker`: the contract of Amazon SageMaker's containers."""

from __future__ import annotations

import contextlib
import io
import json
import struct
from codecs import BOM_UTF8

import numpy as np
import pytest

from serving import called, connect, exchange, golden, same, symbol_in
from support import DIGITS, digits, mxrt


def sent(server, path: str, body=None, method: str | None = None, **headers: str) -> tuple[int, str, bytes]:
    """Status, content type and body of a request; `_` in names of headers stands for `-`."""
    with contextlib.closing(connect(server)) as connection:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        response, data = exchange(connection, path, body, named, method)
        return response.status, response.headers["Content-Type"], data


@pytest.fixture(scope="module")
def container(mx):
    """A container with one model."""
    model = mx.serve.Model(DIGITS / "digits_cnn", shapes={"data": [-1, 1, 8, 8]})
    with mx.serve.Server({"model": model}, port=0, grpc_port="off", sagemaker="model") as server:
        yield server


@pytest.fixture
def platform(mx, tmp_path):
    """A container whose models come and go, and a function that makes a folder of one."""

    def folder(name: str) -> str:
        place = tmp_path / name / "model"
        place.mkdir(parents=True)
        for file in ("digits_cnn-symbol.json", "digits_cnn-0000.params"):
            (place / file).write_bytes((DIGITS / file).read_bytes())
        (place / "mxrt.toml").write_text("shapes = { data = [-1, 1, 8, 8] }\n")
        return str(place)

    with mx.serve.Server(port=0, grpc_port="off", sagemaker="models") as server:
        yield server, folder


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def recordio(rows: np.ndarray) -> bytes:
    """Rows as SageMaker's algorithms take them: records of a protobuf message each."""

    def field(number: int, content: bytes) -> bytes:
        size, length = len(content), b""
        while size > 127:
            length, size = length + bytes([size & 127 | 128]), size >> 7
        return bytes([number << 3 | 2]) + length + bytes([size]) + content

    body = b""
    for row in rows.astype("<f4"):
        tensor = field(1, row.tobytes())
        record = field(1, field(1, b"values") + field(2, field(2, tensor)))
        body += struct.pack("<II", 0xCED7230A, len(record)) + record + bytes(-len(record) % 4)
    return body


def scores(records: bytes) -> np.ndarray:
    """Rows of the label `score`, by the definition of the messages alone."""

    def fields(message: bytes) -> dict[int, bytes]:
        found = {}
        while message:
            (tag, message), size, shift = (message[0], message[1:]), 0, 0
            assert tag & 7 == 2
            while True:
                (byte, message), size = (message[0], message[1:]), size | (message[0] & 127) << shift
                shift += 7
                if byte < 128:
                    break
            found[tag >> 3], message = message[:size], message[size:]
        return found

    rows = []
    while records:
        magic, size = struct.unpack_from("<II", records)
        assert magic == 0xCED7230A
        entry = fields(fields(records[8 : 8 + size])[2])
        assert entry[1] == b"score"
        rows.append(np.frombuffer(fields(fields(entry[2])[2])[1], "<f4"))
        records = records[8 + -(-size // 4) * 4 :]
    return np.stack(rows)


def test_ping_says_whether_the_container_answers(container) -> None:
    assert sent(container, "/ping")[0] == 200


def test_an_invocation_takes_lists_arrays_tables_and_records_and_gives_the_same_numbers(mx, container) -> None:
    (batch,) = golden("digits_cnn", 3)
    wanted = called(mx, "digits_cnn", 3)
    table = "\n".join(",".join(repr(float(x)) for x in row.ravel()) for row in batch)
    bodies = {
        "application/json": json.dumps(batch.tolist()),
        "application/x-npy": npy(batch),
        "text/csv": table,
        "application/x-recordio-protobuf": recordio(batch.reshape(3, -1)),
    }
    for kind, body in bodies.items():
        status, answered, data = sent(container, "/invocations", body, Content_Type=kind, Accept="application/x-npy")
        assert (status, answered) == (200, "application/x-npy"), (kind, data)
        assert same([np.load(io.BytesIO(data))], wanted), kind


def test_an_answer_is_lists_of_json_or_what_the_client_accepts(mx, container) -> None:
    body = npy(golden("digits_cnn", 3)[0])
    (wanted,) = called(mx, "digits_cnn", 3)
    for accept in ({}, {"Accept": "*/*"}, {"Accept": "application/json; charset=utf-8"}):
        status, kind, data = sent(container, "/invocations", body, **accept)
        assert (status, kind) == (200, "application/json"), data
        assert same([np.array(json.loads(data), "float32")], [wanted])
    status, kind, data = sent(container, "/invocations", body, Accept="text/csv")
    assert (status, kind) == (200, "text/csv"), data
    assert same([np.loadtxt(io.BytesIO(data), "float32", delimiter=",")], [wanted])
    record = "application/x-recordio-protobuf"
    status, kind, data = sent(container, "/invocations", body, Accept=record)
    assert (status, kind) == (200, record), data
    assert same([scores(data)], [wanted])
    status, _, data = sent(container, "/invocations", body, Accept="image/png")
    assert status == 406 and f"application/json, application/x-npy, text/csv or {record}".encode() in data


def test_lists_of_any_shape_are_no_request_of_the_protocol(mx, tmp_path) -> None:
    doubled = symbol_in(mx.sym.var("series") * 2, tmp_path)
    model = mx.serve.Model(doubled, shapes={"series": [-1, -1, 1]})
    with mx.serve.Server({"model": model}, port=0, grpc_port="off", sagemaker="model") as server:
        for rows in ([[[1], [2], [3]]], [[[1]], [[2]]], [[[1]]]):
            status, _, data = sent(server, "/invocations", json.dumps(rows))
            assert (status, json.loads(data)) == (200, (2 * np.array(rows)).tolist()), data


def test_a_table_may_begin_with_the_mark_of_its_byte_order(container) -> None:
    row = b",".join([b"1"] * 64)
    plain, marked = (sent(container, "/invocations", body, Content_Type="text/csv") for body in (row, BOM_UTF8 + row))
    assert plain[0] == 200 and marked == plain


@pytest.mark.parametrize("kind", ["application/jsonlines", "text/libsvm", "application/x-parquet"])
def test_a_body_of_another_content_type_is_refused_with_those_that_are_read(mx, container, kind) -> None:
    status, _, data = sent(container, "/invocations", b"[[1, 2]]", Content_Type=kind)
    assert status == 415, data
    assert f"bodies of {kind} are not read: send application/json, text/csv".encode() in data
    # A file says itself what it is.
    status, _, data = sent(container, "/invocations", npy(golden("digits_cnn", 1)[0]), Content_Type=kind)
    assert status == 200, data


def protocol(batch: np.ndarray, size: int | None = None, **wanted: bool) -> dict:
    """The request that clients of Triton make: elements in the JSON, or `size` bytes after it."""
    tensor = {"name": "data", "shape": list(batch.shape), "datatype": "FP32"}
    tensor |= {"data": batch.ravel().tolist()} if size is None else {"parameters": {"binary_data_size": size}}
    return {"id": "7", "inputs": [tensor], "parameters": wanted}


def test_an_invocation_may_be_a_request_of_the_protocol(mx, container) -> None:
    # The second one is long enough to be read in the background.
    for count, times in ((3, 1), (16, 5)):
        (batch,) = golden("digits_cnn", count)
        batch = np.concatenate([batch] * times)
        body = json.dumps(protocol(batch))
        status, kind, data = sent(container, "/invocations", body, Content_Type="application/json")
        assert (status, kind) == (200, "application/json"), data
        answer = json.loads(data)
        assert (answer["id"], answer["model_name"], len(answer["outputs"])) == ("7", "model", 1)
        assert answer["outputs"][0]["shape"] == [count * times, 10]
        output = np.array(answer["outputs"][0]["data"], "float32").reshape(-1, 10)
        # A convolution of more images may be computed by another method, with other last bits.
        assert same([output], called(mx, "digits_cnn", count, times))


BINARY_JSON = "application/vnd.sagemaker-triton.binary+json;json-header-size="


def test_the_content_type_gives_the_length_of_the_json_before_binary_data(mx, container) -> None:
    (batch,) = golden("digits_cnn", 3)
    wanted = called(mx, "digits_cnn", 3)
    head = json.dumps(protocol(batch, batch.nbytes)).encode()
    kind = f"{BINARY_JSON}{len(head)}"
    status, answered, data = sent(container, "/invocations", head + batch.tobytes(), Content_Type=kind)
    assert (status, answered) == (200, "application/json"), data
    (output,) = json.loads(data)["outputs"]
    assert same([np.array(output["data"], "float32").reshape(3, 10)], wanted)
    body = json.dumps(protocol(batch, binary_data_output=True))
    status, answered, data = sent(container, "/invocations", body, Content_Type="application/json")
    assert status == 200 and answered.startswith(BINARY_JSON), data
    size = int(answered.removeprefix(BINARY_JSON))
    assert json.loads(data[:size])["outputs"][0]["parameters"]["binary_data_size"] == len(data) - size
    assert same([np.frombuffer(data[size:], "float32").reshape(3, 10)], wanted)


RENAMING = """
OUTPUTS = {"SCORES": ("FP32", [-1, 10])}

def encode(arrays):
    (scores,) = arrays.values()
    return {"SCORES": scores}
"""


@pytest.mark.parametrize(
    ("hooks", "answer"),
    [
        (RENAMING, "SCORES"),
        (RENAMING + "def preprocess(request): return {'data': numpy.zeros((1, 1, 8, 8), 'float32')}", None),
    ],
)
def test_hooks_without_functions_for_bodies_leave_requests_to_the_server(mx, tmp_path, hooks, answer) -> None:
    (tmp_path / "hooks.py").write_text(f"import numpy\n{hooks}")
    model = mx.serve.Model(DIGITS / "digits_cnn", shapes={"data": [-1, 1, 8, 8]}, hooks=tmp_path / "hooks.py")
    with mx.serve.Server({"model": model}, port=0, grpc_port="off", sagemaker="model") as server:
        body = json.dumps(protocol(golden("digits_cnn", 3)[0]))
        status, _, data = sent(server, "/invocations", body, Content_Type="application/json")
        assert status == 200, data
        found = json.loads(data)
        if answer:
            assert found["outputs"][0]["name"] == answer
        else:
            assert np.array(found).shape == (1, 10), "what the hook makes of the body"


@pytest.mark.parametrize(
    "kind",
    [
        f"additional-string/{BINARY_JSON}{{size}}",
        f"{BINARY_JSON}additional-string{{size}}",
        f"{BINARY_JSON}-123",
        f"{BINARY_JSON}12345",
        f"{BINARY_JSON}99999999999999999999999",
        BINARY_JSON.partition(";")[0],
    ],
)
def test_a_wrong_length_of_the_json_is_refused(container, kind) -> None:
    (batch,) = golden("digits_cnn", 1)
    head = json.dumps(protocol(batch, batch.nbytes)).encode()
    whole = head + batch.tobytes()
    # The second one comes in chunks, without a length.
    for body in (whole, iter([whole])):
        status, _, data = sent(container, "/invocations", body, Content_Type=kind.format(size=len(head)))
        assert status == 400, data
        assert b"json-header-size=N with the bytes of the JSON" in data or b"the JSON has 12345 bytes" in data
    status, _, data = sent(container, "/invocations", head, Content_Type="application/json")
    assert status == 400 and b"'binary_data_size' needs the header Content-Type" in data
    assert sent(container, "/ping")[0] == 200


def test_an_image_is_answered_where_the_server_knows_how_it_becomes_the_input(mx, tmp_path) -> None:
    from PIL import Image

    pixels = (digits(1)[0][0, 0] * 255).round().astype("uint8")
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png")
    preprocess = {"size": [8, 8], "grey": True, "mean": [0.0], "std": [1.0], "scale": 1 / 255}
    model = mx.serve.Model(DIGITS / "digits_cnn", shapes={"data": [-1, 1, 8, 8]}, preprocess=preprocess)
    with mx.serve.Server({"model": model}, port=0, grpc_port="off", sagemaker="model") as server:
        status, _, data = sent(server, "/invocations", file.getvalue(), Content_Type="application/x-image")
        assert status == 200, data
        assert np.array(json.loads(data)).shape == (1, 10)


@pytest.mark.parametrize(
    ("kind", "body", "words"),
    [
        ("text/csv", b"1,2\n", b"line 1 of the CSV has 2 columns; expected 64"),
        ("text/csv", b"a" + b",1" * 63, b"line 1, column 1 of the CSV is 'a', which is no number"),
        ("text/csv", b"", b"no line"),
        ("application/json", b"[[1, 2", b"EOF"),
        ("application/x-recordio-protobuf", b"\x0a\x23\xd7\xce\xff\xff\xff\x1f", b"ends inside of a record"),
        ("application/x-recordio-protobuf", recordio(np.ones((1, 3))), b"a record has 3 features; expected 64"),
        ("application/x-npy", b"nothing", b"expected a .npy"),
        ("image/jpeg", b"nothing", b"the body has the type image/jpeg, but begins like no JPEG and no PNG"),
    ],
)
def test_a_wrong_body_is_refused_with_what_was_expected(mx, container, kind, body, words) -> None:
    status, _, data = sent(container, "/invocations", body, Content_Type=kind)
    assert status == 400 and words in data, data
    assert sent(container, "/invocations", npy(golden("digits_cnn", 1)[0]))[0] == 200


def test_the_platform_loads_lists_asks_and_unloads_models(mx, platform) -> None:
    server, folder = platform
    assert sent(server, "/ping")[0] == 200
    assert json.loads(sent(server, "/models")[2]) == {"models": []}
    # The folder of a is named by the platform after the model, that of b by a test of Triton.
    urls = {"a": folder("a"), "b": folder("123")}
    for name, url in urls.items():
        body = json.dumps({"model_name": name, "url": url})
        assert sent(server, "/models", body)[0] == 200
        assert sent(server, "/models", body)[0] == 409
    listed = {"a": urls["a"], "b": urls["b"].removesuffix("/model")}
    known = [{"modelName": name, "modelUrl": url} for name, url in listed.items()]
    assert json.loads(sent(server, "/models")[2]) == {"models": known}
    page = json.loads(sent(server, "/models?limit=1")[2])
    assert page["models"] == known[:1]
    rest = json.loads(sent(server, f"/models?limit=1&next_page_token={page['nextPageToken']}")[2])
    assert rest == {"models": known[1:]}
    assert json.loads(sent(server, "/models/b")[2]) == known[1]
    status, _, data = sent(server, "/models/b/invoke", npy(golden("digits_cnn", 1)[0]), Accept="application/x-npy")
    assert status == 200 and same([np.load(io.BytesIO(data))], called(mx, "digits_cnn", 1))
    server.reload()
    assert json.loads(sent(server, "/models")[2]) == {"models": known}
    assert sent(server, "/models/b", method="DELETE")[0] == 200
    for path, method in (("/models/b", "GET"), ("/models/b", "DELETE"), ("/models/b/invoke", "POST")):
        assert sent(server, path, method=method)[0] == 404, path
    assert json.loads(sent(server, "/models")[2]) == {"models": known[:1]}


def test_a_model_that_does_not_load_is_refused_and_leaves_nothing(platform) -> None:
    server, folder = platform
    for asked, words in (
        ({"model_name": "../a", "url": folder("c")}, b"is no name of a model"),
        ({"url": folder("d")}, b"'model_name'"),
        ({"model_name": "e"}, b"'url'"),
    ):
        status, _, data = sent(server, "/models", json.dumps(asked))
        assert status == 400 and words in data, data
    # A path where nothing is has the status of SageMaker's toolkit.
    status, _, data = sent(server, "/models", json.dumps({"model_name": "none", "url": "/nowhere/model"}))
    assert status == 404 and b"/nowhere" in data, data
    assert json.loads(sent(server, "/models")[2]) == {"models": []}
    assert server.index == []


def test_clients_of_the_toolkit_get_the_words_of_mxnet_model_server(platform) -> None:
    server, folder = platform
    model = {"model_name": "resnet_18", "url": folder("resnet_18")}
    status, _, data = sent(server, "/models", json.dumps(model), Content_Type="application/json")
    assert status == 200 and json.loads(data)["status"] == "Workers scaled"
    known = {"modelName": "resnet_18", "modelUrl": model["url"]}
    assert json.loads(sent(server, "/models")[2]) == {"models": [known]}
    assert json.loads(sent(server, "/models/resnet_18")[2]) == known
    status, _, data = sent(server, "/models", json.dumps(model))
    assert status == 409 and json.loads(data)
    status, _, data = sent(server, "/models/resnet_18", method="DELETE")
    assert status == 200 and json.loads(data)["status"] == 'Model "resnet_18" unregistered'
    status, _, data = sent(server, "/models/resnet_18", method="DELETE")
    assert status == 404 and json.loads(data)


def test_without_the_setting_there_are_no_such_paths(mx, server) -> None:
    for path in ("/ping", "/invocations", "/models"):
        status, _, data = sent(server, path)
        assert status == 404 and b"with --sagemaker" in data
    assert sent(server, "/models", json.dumps({"model_name": "a", "url": "/"}))[0] == 404


def test_the_platform_alone_names_files(mx, container) -> None:
    status, _, data = sent(container, "/models", json.dumps({"model_name": "a", "url": "/"}))
    assert (status, b"SAGEMAKER_MULTI_MODEL=true" in data) == (409, True), data


@pytest.mark.parametrize(
    ("body", "at"), [("A" * 65_536, "Invalid value. at 0"), ('{\n "a": x}', "Invalid value. at 8")]
)
def test_a_body_that_is_no_json_is_refused_with_the_place_of_the_fault(container, platform, body, at) -> None:
    for server in (container, platform[0]):
        status, _, data = sent(server, "/models", body)
        assert (status, f"failed to parse the request JSON buffer: {at}" in data.decode()) == (400, True), data


def test_the_word_with_which_the_platform_runs_a_container_is_no_model(tmp_path) -> None:
    result = mxrt("serve", "--sagemaker", "serve", f"model={DIGITS / 'digits_cnn'}", "--print-config")
    assert (result.returncode, "serve-symbol.json" in result.stderr) == (0, False), result
    assert "[models.model]" in result.stdout and "[models.serve]" not in result.stdout
    result = mxrt("serve", "serve", "--print-config")
    assert "there is no file 'serve-symbol.json'" in result.stderr, "elsewhere it is a model"


def test_notes_of_the_platform_give_the_shape_of_a_row(mx, tmp_path) -> None:
    for file in ("digits_cnn-symbol.json", "digits_cnn-0000.params"):
        (tmp_path / file).write_bytes((DIGITS / file).read_bytes())
    (tmp_path / "model-shapes.json").write_text('[{"name": "data", "shape": [1, 1, 8, 8]}]')
    with mx.serve.Server({"model": tmp_path}, port=0, grpc_port="off", sagemaker="model") as server:
        lines = "\n".join(",".join(["0.5"] * 64) for _ in range(3))
        status, _, data = sent(
            server, "/invocations", lines.encode(), content_type="text/csv", accept="application/json"
        )
        assert (status, np.shape(json.loads(data))) == (200, (3, 10)), data
    (tmp_path / "model-shapes.json").write_text('[{"name": "data"}]')
    result = mxrt("serve", f"m={tmp_path}", "--check")
    assert (result.returncode, "model-shapes.json: missing field `shape`" in result.stderr) == (1, True), result


def test_the_option_follows_the_variables_of_the_platform(mx) -> None:
    model = f"d={DIGITS / 'digits_cnn'}"
    printed = mxrt("serve", "--sagemaker", model, "--print-config", env={"SAGEMAKER_BIND_TO_PORT": "4321"}).stdout
    for line in ('sagemaker = "model"', 'host = "0.0.0.0"', "port = 4321", 'grpc_port = "off"'):
        assert f"\n{line}" in f"\n{printed}", printed
    printed = mxrt("serve", "--sagemaker", "--print-config", env={"SAGEMAKER_MULTI_MODEL": "true"}).stdout
    assert 'sagemaker = "models"' in printed and "port = 8080" in printed
    for text, role in (("False", "model"), ("TRUE", "models")):
        printed = mxrt("serve", "--sagemaker", model, "--print-config", env={"SAGEMAKER_MULTI_MODEL": text}).stdout
        assert f'sagemaker = "{role}"' in printed, printed
    refused = mxrt("serve", "--sagemaker", model, env={"SAGEMAKER_MULTI_MODEL": "maybe"})
    assert refused.returncode == 2
    assert "SAGEMAKER_MULTI_MODEL is 'maybe'; expected true or false" in refused.stderr
    printed = mxrt("serve", "--sagemaker", model, "--port", "9", "--print-config").stdout
    assert "port = 9" in printed
    refused = mxrt("serve", "--sagemaker", model, env={"SAGEMAKER_BIND_TO_PORT": "http"})
    assert refused.returncode == 2
    assert "SAGEMAKER_BIND_TO_PORT is 'http'; expected a port from 0 to 65535" in refused.stderr
    variables = {"SAGEMAKER_MAX_PAYLOAD_IN_MB": "5"}
    assert 'max_body = "5 MiB"' in mxrt("serve", "--sagemaker", model, "--print-config", env=variables).stdout
    refused = mxrt("serve", "--sagemaker", model, env={"SAGEMAKER_MAX_PAYLOAD_IN_MB": "0"})
    assert refused.returncode == 2
    assert "SAGEMAKER_MAX_PAYLOAD_IN_MB is '0'; expected a number of MiB" in refused.stderr

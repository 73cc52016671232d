"""`mxrt inspect` and `mxrt convert`: what is in a model, and copies of it."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest

from commands import command, digits_in, refused, tiny
from support import DIGITS, MODELS

SHAPE = ("--shape", "2,2,4,4")


def test_inspect_counts_the_operators_the_parameters_and_the_work(mx, capfd, tmp_path: Path) -> None:
    done = command(capfd, "inspect", tiny(tmp_path), *SHAPE, "--json")
    report = done.json
    assert (done.status, report["runs"], report["mxnet_version"], report["parameters_format"]) == (
        0,
        True,
        "1.9.1",
        "V2",
    )
    assert report["inputs"] == [{"name": "data", "shape": [2, 2, 4, 4], "dtype": "float32"}]
    assert report["outputs"] == [{"name": "dense_output", "shape": [2, 4], "dtype": "float32"}]
    assert report["operators"]["Convolution"] == {"count": 1, "supported": True, "gpu": "yes"}
    assert report["parameters"] == {"arrays": 4, "numbers": 6 + 3 + 48 + 4}
    layers = {one["name"]: one for one in report["layers"]}
    assert list(layers) == ["conv", "relu", "pool", "flat", "dense"]
    # By hand: 2 images of 16 pixels, 3 filters over 2 channels; 2 rows of 4 sums of 12.
    assert (layers["conv"]["macs"], layers["dense"]["macs"]) == (2 * 16 * 3 * 2, 2 * 4 * 12)
    assert (layers["conv"]["parameters"], layers["conv"]["output"]) == (9, [2, 3, 4, 4])


def test_inspect_says_which_operators_run_on_the_cpu_and_on_a_gpu(mx, capfd, tmp_path: Path) -> None:
    data = mx.sym.var("data")
    mx.sym.contrib.fft(mx.sym.exp(mx.sym.exp(data))).save(str(tmp_path / "fft-symbol.json"))
    mx.nd.save(str(tmp_path / "fft-0000.params"), {})
    done = command(capfd, "inspect", tmp_path / "fft", "--shape", "2,3,3")
    rows = [line.split() for line in done.out.splitlines()]
    assert ["exp", "2", "yes", "yes"] in rows and ["_contrib_fft", "1", "yes", "no"] in rows, done.out
    assert "without a kernel for GPUs: _contrib_fft" in done.out
    loop, _ = mx.sym.contrib.foreach(lambda x, state: (x + state, state), data, mx.sym.var("state"))
    loop.save(str(tmp_path / "loop-symbol.json"))
    mx.nd.save(str(tmp_path / "loop-0000.params"), {"arg:state": mx.nd.zeros((3,))})
    report = command(capfd, "inspect", tmp_path / "loop", "--shape", "2,3", "--json").json
    assert report["operators"]["_foreach"]["gpu"] == "no", "loops run on the host"


def test_inspect_reads_the_parameters_once(mx, capfd, tmp_path: Path, monkeypatch) -> None:
    from mxrt import _mxrt

    read: list[str] = []
    load = _mxrt.load_arrays
    monkeypatch.setattr(_mxrt, "load_arrays", lambda file: (read.append(str(file)), load(file))[1])
    prefix = tiny(tmp_path)
    assert command(capfd, "inspect", prefix, "--shape", "2,2,4,4").status == 0
    assert read == [f"{prefix}-0000.params"]


def test_the_parameters_of_another_model_do_not_hide_why_a_model_does_not_run(mx, capfd, tmp_path: Path) -> None:
    net = mx.gluon.nn.HybridSequential()
    for _ in range(20):
        net.add(mx.gluon.nn.Dense(2, in_units=2))
    net.initialize()
    net.hybridize()
    net(mx.nd.zeros((1, 2)))
    net.export(str(tmp_path / "long"))
    tiny(tmp_path)
    done = command(capfd, "inspect", tmp_path / "long", "--params", tmp_path / "tiny-0000.params")
    assert done.status == 1
    assert "and 29 more inputs (--json: all)" in done.out and done.out.count("  input ") == 12
    assert "runs: no: " in done.out.splitlines()[-1]


def test_inspect_says_in_one_line_that_a_model_runs(mx, capfd, tmp_path: Path) -> None:
    out = command(capfd, "inspect", tiny(tmp_path), *SHAPE).out
    assert out.splitlines()[-1].startswith("runs: yes")
    assert "5 layers" not in out and "written by MXNet 1.9.1" in out


@pytest.mark.parametrize("name", ["legacy_mlp", "module_mlp", "digits_cnn", "half_cnn"])
def test_inspect_reads_models_of_every_age(mx, capfd, name: str) -> None:
    done = command(capfd, "inspect", MODELS / name, "--json", *(["--shape", "1,1,8,8"] if "cnn" in name else []))
    assert done.status == 0, done
    assert done.json["runs"] is True


def test_an_operator_that_is_not_supported_is_named_with_its_layer(mx, capfd, tmp_path: Path) -> None:
    prefix = tiny(tmp_path)
    symbol = tmp_path / "tiny-symbol.json"
    symbol.write_text(symbol.read_text().replace('"op":"Flatten"', '"op":"Flattten"'))
    done = command(capfd, "inspect", prefix, *SHAPE)
    assert done.status == 1
    assert ["Flattten", "1", "no", "?"] in [line.split() for line in done.out.splitlines()]
    assert "not supported: Flattten" in done.out
    assert done.out.splitlines()[-1].startswith("runs: no:") and "flat" in done.out.splitlines()[-1]
    done = command(capfd, "check", prefix)
    assert done.status == 1 and "operators that mxrt does not have: Flattten, in the nodes flat" in done.out


def test_a_check_names_some_nodes_of_an_operator_that_is_missing(mx, capfd, tmp_path: Path) -> None:
    model = digits_in(tmp_path)
    symbol = tmp_path / "digits_cnn-symbol.json"
    nodes = json.loads(symbol.read_text())["nodes"]
    names = [node["name"] for node in nodes if node["op"] == "Convolution"]
    symbol.write_text(symbol.read_text().replace('"op": "Convolution"', '"op": "Convolutoin"'))
    done = command(capfd, "check", model, "--shape", "1,1,8,8")
    assert done.status == 1
    listed = f"in the nodes {', '.join(names[:3])} and {len(names) - 3} more; mxrt explain MX-NONE says"
    assert len(names) > 4 and listed in done.out, done.out


def test_a_graph_without_parameters_needs_no_file_of_them(mx, capfd, tmp_path: Path) -> None:
    (mx.sym.relu(mx.sym.var("data"), name="r") * 2).save(str(tmp_path / "bare-symbol.json"))
    bare = tmp_path / "bare"
    done = command(capfd, "inspect", bare, "--shape", "1,3")
    assert done.status == 0 and "(1, 3)" in done.out and "parameter file" not in done.out, done
    for words in (("run", bare, "random"), ("plan", bare), ("profile", bare, "--seconds", "0.01"), ("check", bare)):
        assert command(capfd, *words, "--shape", "1,3").status == 0, words
    refused(command(capfd, "run", bare, "random"), 2, "the shape of data is not known")


def test_control_characters_of_names_are_read_as_mxnet_writes_them(mx, capfd, tmp_path: Path) -> None:
    dense = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="de\x1b[31mnse")
    mx.model.save_checkpoint(str(tmp_path / "odd"), 0, dense, {}, {})
    values = {"arg:de\x1b[31mnse_weight": mx.nd.ones((2, 3)), "arg:de\x1b[31mnse_bias": mx.nd.zeros(2)}
    mx.nd.save(str(tmp_path / "odd-0000.params"), values)
    for words in (("inspect",), ("plan",), ("profile", "--seconds", "0.01")):
        done = command(capfd, words[0], tmp_path / "odd", *words[1:], "--shape", "1,3")
        assert done.status == 0 and "\x1b" not in done.out, done
    again = mx.sym.load_json(dense.tojson())
    assert again.list_arguments() == dense.list_arguments()
    net = mx.gluon.SymbolBlock.imports(str(tmp_path / "odd-symbol.json"), ["data"], str(tmp_path / "odd-0000.params"))
    net.summary(mx.nd.ones((1, 3)))
    mx.viz.print_summary(dense, {"data": (1, 3)})
    mx.contrib.quantization.quantize_net_v2(net, calib_mode="none", data_shapes=[mx.io.DataDesc("data", (1, 3))])


def test_inspect_shows_numbers_of_parameters_and_counts_what_is_no_number(mx, capfd, tmp_path: Path) -> None:
    prefix = tiny(tmp_path)
    values = mx.nd.load(f"{prefix}-0000.params")
    weight = values["arg:cw"].asnumpy()
    weight.ravel()[:3] = np.nan, np.inf, 7.0
    mx.nd.save(f"{prefix}-0000.params", {**values, "arg:cw": mx.nd.array(weight)})
    rows = command(capfd, "inspect", prefix, "--params", *SHAPE, "--json").json["weights"]
    (row,) = (one for one in rows if one["name"] == "cw")
    finite = weight[np.isfinite(weight)]
    assert (row["nan"], row["infinite"], row["max"]) == (1, 1, 7.0)
    assert row["mean"] == pytest.approx(finite.mean()) and row["min"] == pytest.approx(finite.min())
    assert "NaN" in command(capfd, "inspect", prefix, "--params", *SHAPE).out


def test_the_difference_of_two_models_names_layers_attributes_and_values(mx, capfd, tmp_path: Path) -> None:
    one, two = tiny(tmp_path / "one"), tiny(tmp_path / "two")
    done = command(capfd, "inspect", one, "--diff", two)
    assert (done.status, done.out) == (0, "no difference: the same layers, and the same values of all parameters\n")
    symbol = two.with_name("tiny-symbol.json")
    symbol.write_text(symbol.read_text().replace('"avg"', '"max"'))
    values = mx.nd.load(f"{two}-0000.params")
    mx.nd.save(f"{two}-0000.params", {**values, "arg:db": values["arg:db"] + 0.5})
    done = command(capfd, "inspect", one, "--diff", two, "--json")
    rows = [(row["what"], row["name"]) for row in done.json["differences"]]
    assert (done.status, rows) == (1, [("attribute pool_type", "pool"), ("values", "db")])
    assert "at most 0.5" in done.json["differences"][1]["other"]


def test_the_difference_of_two_models_names_other_connections_and_outputs(mx, capfd, tmp_path: Path) -> None:
    x = mx.sym.var("data")
    relu, tanh = mx.sym.relu(x, name="relu"), mx.sym.tanh(x, name="tanh")
    made = {
        "one": mx.sym.broadcast_sub(relu, tanh, name="sub"),
        "swapped": mx.sym.broadcast_sub(tanh, relu, name="sub"),
        "two": mx.sym.Group([mx.sym.broadcast_sub(relu, tanh, name="sub"), relu]),
        "fewer": mx.sym.exp(relu, name="sub"),
    }
    for name, graph in made.items():
        graph.save(str(tmp_path / f"{name}-symbol.json"))

    def rows(other: str) -> list[list[str]]:
        done = command(capfd, "inspect", tmp_path / "one", "--diff", tmp_path / other, "--json")
        assert done.status == 1, done
        return [list(row.values()) for row in done.json["differences"]]

    assert rows("swapped") == [["inputs", "sub", "relu, tanh", "tanh, relu"]]
    assert rows("two") == [["outputs", "", "sub", "sub, relu"]]
    assert rows("fewer") == [["layer", "tanh", "tanh", "-"], ["operator", "sub", "broadcast_sub", "exp"]]
    made["fewer"].save(str(tmp_path / "one-symbol.json"))
    mx.sym.exp(mx.sym.relu(mx.sym.var("x"), name="relu"), name="sub").save(str(tmp_path / "two-symbol.json"))
    assert rows("two") == [["layer", "data", "variable", "-"], ["layer", "x", "-", "variable"]]


@pytest.mark.parametrize(
    ("out", "made"),
    [
        ("c.npz", ["c-symbol.json", "c.npz"]),
        ("c.safetensors", ["c-symbol.json", "c.safetensors"]),
        ("c-symbol.json", ["c-0000.params", "c-symbol.json"]),
        ("c.onnx", ["c.onnx"]),
    ],
)
def test_the_copy_may_be_named_by_one_of_its_files(mx, capfd, tmp_path: Path, out: str, made: list[str]) -> None:
    (tmp_path / "out").mkdir()
    done = command(capfd, "convert", digits_in(tmp_path), tmp_path / "out" / out, "--shape", "1,1,8,8")
    assert done.status == 0, done
    assert sorted(one.name for one in (tmp_path / "out").iterdir()) == made


@pytest.mark.parametrize("shape", ["1,x", "1,,8", ",1", "1,2,,"])
def test_a_shape_with_a_hole_is_none(mx, capfd, tmp_path: Path, shape: str) -> None:
    refused(command(capfd, "inspect", digits_in(tmp_path), "--shape", shape), 2, f"'{shape}' is no shape")
    assert command(capfd, "inspect", digits_in(tmp_path), "--shape", "(1x1x8x8,)").status == 0


def test_a_shape_that_does_not_fit_says_why_it_does_not_run(mx, capfd, tmp_path: Path) -> None:
    prefix = tiny(tmp_path)
    done = command(capfd, "inspect", prefix, "--shape", "1,3,4,4")
    assert done.status == 1 and "runs: no:" in done.out and "conv" in done.out
    refused(command(capfd, "inspect", prefix, "--shape", "photo=1,3,4,4"), 2, "no input 'photo'")
    refused(command(capfd, "inspect", prefix, "--shape", "1,wide"), 2, "is no shape")


# ---- copies --------------------------------------------------------------------------------------


def loaded(mx, prefix: Path, params: str = "-0000.params"):
    graph = mx.sym.load(f"{prefix}-symbol.json")
    held = {name.partition(":")[2] for name in mx.nd.load(f"{prefix}{params}")}
    names = [name for name in graph.list_inputs() if name not in held]
    return mx.gluon.SymbolBlock.imports(f"{prefix}-symbol.json", names, f"{prefix}{params}")


def test_a_copy_in_float16_has_half_the_bytes_and_the_accuracy(mx, capfd, tmp_path: Path) -> None:
    data = DIGITS / "eval.npz"
    done = command(capfd, "convert", digits_in(tmp_path), tmp_path / "half", "--float16", "--data", data, "--json")
    report = done.json
    assert done.status == 0, done
    assert report["bytes"] < 0.55 * report["bytes_before"]
    assert report["accuracy_before"] == pytest.approx(0.98889, abs=1e-4)
    net = loaded(mx, tmp_path / "half")
    with np.load(data) as saved:
        accuracy = (net(saved["in.data"]).asnumpy().argmax(1) == saved["label"]).mean()
    assert accuracy == pytest.approx(report["accuracy"]) and accuracy > 0.98
    kinds = {one.data().dtype for one in net.collect_params().values()}
    assert kinds == {np.float16, np.float32}, "those of BatchNorm stay"


def test_an_old_model_becomes_todays_without_its_training_head(mx, capfd, tmp_path: Path) -> None:
    done = command(capfd, "convert", MODELS / "legacy_mlp", tmp_path / "new", "--strip-heads", "--json")
    assert done.status == 0 and "SoftmaxOutput 'softmax' is now softmax" in done.json["changes"]
    text = json.loads((tmp_path / "new-symbol.json").read_text())
    keys = {key for node in text["nodes"] for key in node}
    assert "attrs" in keys and not keys & {"param", "attr", "backward_source_id"}, "today's form"
    assert text["attrs"]["mxnet_version"]
    net = loaded(mx, tmp_path / "new")
    assert net._symbol.list_arguments()[0] == "data" and "softmax_label" not in net._symbol.list_inputs()
    with np.load(MODELS / "legacy_mlp" / "golden.npz") as saved:
        np.testing.assert_allclose(net(saved["b3.in.data"]).asnumpy(), saved["b3.out.0"], atol=1e-5)


def test_layers_inputs_and_parameters_get_other_names(mx, capfd, tmp_path: Path) -> None:
    prefix = tiny(tmp_path)
    options = ("--rename", "data=image", "--rename", "c*=first_*", *SHAPE)
    assert command(capfd, "convert", prefix, tmp_path / "new", *options).status == 0
    old, new = loaded(mx, prefix), loaded(mx, tmp_path / "new")
    assert set(new.collect_params()) == {"first_w", "first_b", "dw", "db"}
    x = np.random.RandomState(3).rand(2, 2, 4, 4).astype("f4")
    np.testing.assert_array_equal(new(image=x).asnumpy(), old(x).asnumpy())
    again = ("convert", prefix, tmp_path / "other", *SHAPE)
    refused(command(capfd, *again, "--rename", "dtaa=x"), 2, "'dtaa'", "did you mean data")
    refused(command(capfd, *again, "--rename", "cw=cb"), 2, "two nodes the name 'cb'")
    refused(command(capfd, *again, "--rename", "cw"), 2, "expected OLD=NEW")


def test_parameters_are_written_for_numpy_and_as_safetensors(mx, capfd, tmp_path: Path) -> None:
    prefix = tiny(tmp_path)
    wanted = {name.partition(":")[2]: value.asnumpy() for name, value in mx.nd.load(f"{prefix}-0000.params").items()}
    for form in ("npz", "safetensors"):
        assert command(capfd, "convert", prefix, tmp_path / form, "--format", form, *SHAPE).status == 0
    with np.load(tmp_path / "npz.npz") as saved:
        assert {name: saved[name].tobytes() for name in saved.files} == {k: v.tobytes() for k, v in wanted.items()}
    content = (tmp_path / "safetensors.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header, rest = json.loads(content[8 : 8 + length]), content[8 + length :]
    assert length % 8 == 0
    for name, value in wanted.items():
        begin, end = header[name]["data_offsets"]
        assert (header[name]["dtype"], tuple(header[name]["shape"])) == ("F32", value.shape)
        assert rest[begin:end] == value.tobytes()


def test_a_copy_overwrites_nothing_unless_told_to(mx, capfd, tmp_path: Path) -> None:
    prefix = tiny(tmp_path)
    before = Path(f"{prefix}-symbol.json").read_bytes()
    refused(command(capfd, "convert", prefix, prefix, *SHAPE), 2, "exists", "--force")
    assert Path(f"{prefix}-symbol.json").read_bytes() == before
    refused(command(capfd, "convert", prefix, tmp_path / "no" / "x", *SHAPE), 2, "there is no folder")
    assert command(capfd, "convert", prefix, tmp_path / "x", *SHAPE).status == 0
    assert command(capfd, "convert", prefix, tmp_path / "x", "--force", *SHAPE).status == 0


def test_a_head_that_flattens_is_not_replaced_by_something_else(mx, capfd, tmp_path: Path) -> None:
    data = mx.sym.var("data")
    graph = mx.sym.SoftmaxOutput(mx.sym.Convolution(data, kernel=(1, 1), num_filter=2, name="c"), name="softmax")
    graph.save(str(tmp_path / "m-symbol.json"))
    values = {"arg:c_weight": mx.nd.ones((2, 1, 1, 1)), "arg:c_bias": mx.nd.zeros((2,))}
    mx.nd.save(str(tmp_path / "m-0000.params"), values)
    done = command(capfd, "convert", tmp_path / "m", tmp_path / "n", "--strip-heads", "--shape", "1,1,2,2")
    refused(done, 1, "flattens what it reads")
    assert not (tmp_path / "n-symbol.json").exists()


def test_a_copy_that_cannot_be_written_leaves_nothing(mx, capfd, tmp_path: Path) -> None:
    prefix = tiny(tmp_path)
    (tmp_path / "out-0000.params").mkdir()
    done = command(capfd, "convert", prefix, tmp_path / "out", "--force", *SHAPE)
    assert done.status == 1 and "out-0000.params" in done.err, done
    assert not (tmp_path / "out-symbol.json").exists()
    shutil.rmtree(tmp_path / "out-0000.params")

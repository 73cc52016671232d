"""Values of inputs and outputs: which input a file is for, numbers that its type holds, rows that
are saved, names of arrays.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands import command, digits_in, picture, refused

TYPES = ["int32", "int64", "uint8", "float16", "float32", "float64"]


def saved(mx, folder: Path, name: str, symbol: Any, **parameters: np.ndarray) -> Path:
    """A model in a folder; the prefix of its files."""
    symbol.save(str(folder / f"{name}-symbol.json"))
    arrays = {f"arg:{key}": mx.nd.array(value, dtype=value.dtype) for key, value in parameters.items()}
    mx.nd.save(str(folder / f"{name}-0000.params"), arrays)
    return folder / name


def plus_zero(mx, folder: Path, dtype: str) -> Path:
    """A model that answers two numbers of a type unchanged."""
    data, zero = (mx.sym.var(name, dtype=dtype, shape=(1, 2)) for name in ("data", "w"))
    return saved(mx, folder, dtype, mx.sym.broadcast_add(data, zero, name="o"), w=np.zeros((1, 2), dtype))


def answered(capfd, folder: Path, prefix: Path, file: Path) -> np.ndarray:
    done = command(capfd, "run", prefix, file, "-o", folder / "answers.npz")
    assert done.status == 0, done
    with np.load(folder / "answers.npz") as found:
        return found["o_output"]


@pytest.mark.parametrize(
    ("dtype", "row", "wanted"),
    [
        ("int32", "16777217,-3", [16777217, -3]),
        ("int64", "9007199254740993,1e3", [9007199254740993, 1000]),
        ("uint8", "255,0.0", [255, 0]),
        ("float64", "0.1,1e300", [0.1, 1e300]),
        ("float32", "0.1,2,", [0.1, 2]),
    ],
)
def test_a_table_has_the_numbers_of_the_type(mx, capfd, tmp_path: Path, dtype: str, row: str, wanted) -> None:
    (tmp_path / "x.csv").write_text(f"{row}\n")
    found = answered(capfd, tmp_path, plus_zero(mx, tmp_path, dtype), tmp_path / "x.csv")
    assert found.dtype == dtype and found[0].tolist() == np.array(wanted, dtype).tolist()


@pytest.mark.parametrize(
    ("dtype", "row", "words"),
    [
        ("int32", "1,1.9", "line 1 has 1.9, which int32 does not hold; expected whole numbers from -2147483648"),
        ("int32", "3000000000,1", "line 1 has 3000000000, which int32"),
        ("int32", "nan,1", "line 1 has nan, which int32"),
        ("uint8", "-1,1", "line 1 has -1, which uint8 does not hold; expected whole numbers from 0 to 255"),
        ("float32", "1,1e40", "element (0, 1) of the input 'data' is 1e+40, which float32 does not hold"),
        ("float16", "1,70000", "element (0, 1) of the input 'data' is 70000.0, which float16"),
        ("float32", "1,,2", "line 1: cell 2 is empty; expected a number in each"),
        ("float32", ",1", "line 1: cell 1 is empty"),
        ("float32", "1,2\n1_0,2", "line 2: cell 1 is '1_0'; expected numbers with commas"),
        ("int32", "1,2\n1_0,2", "line 2: cell 1 is '1_0'; expected numbers with commas"),
    ],
)
def test_a_table_that_the_type_does_not_hold_is_refused(mx, capfd, tmp_path: Path, dtype, row, words) -> None:
    (tmp_path / "x.csv").write_text(f"{row}\n")
    refused(command(capfd, "run", plus_zero(mx, tmp_path, dtype), tmp_path / "x.csv"), 1, "x.csv'", words)


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("int32", [1.9, 1]),
        ("int32", [np.nan, 1]),
        ("int32", np.array([1 << 40, 1])),
        ("int64", np.array([1 << 63, 1], "uint64")),
        ("uint8", [300, 1]),
        ("uint8", [-1, 1]),
        ("uint8", np.array([-1, 1])),
        ("float16", [16777217, 1]),
        ("float32", [1e300, 1]),
    ],
)
def test_arrays_that_the_type_does_not_hold_are_refused_by_each_command(mx, capfd, tmp_path: Path, dtype, values):
    prefix, file, data = plus_zero(mx, tmp_path, dtype), tmp_path / "x.npz", np.asarray(values)[None]
    np.savez(file, data=data, o_output=np.zeros((1, 2), dtype))
    np.save(tmp_path / "x.npy", data)
    words = f"element (0, 0) of the input 'data' is {data[0, 0]}, which {dtype} does not hold; expected"
    refused(command(capfd, "run", prefix, tmp_path / "x.npy"), 1, "x.npy'", words)
    for arguments in (("check", prefix, "--data", file), ("check", prefix, "--golden", file)):
        done = command(capfd, *arguments)
        assert done.status == 1 and words in done.out, done
    refused(command(capfd, "convert", prefix, tmp_path / "copy", "--data", file), 1, "x.npz'", words)


@pytest.mark.parametrize("dtype", TYPES)
def test_values_that_the_type_holds_are_accepted_in_any_type(mx, capfd, tmp_path: Path, dtype: str) -> None:
    prefix = plus_zero(mx, tmp_path, dtype)
    for given in [*TYPES, "bool", ">f4"]:
        np.save(tmp_path / "x.npy", np.array([[0, 1]], given))
        assert answered(capfd, tmp_path, prefix, tmp_path / "x.npy").tolist() == [[0, 1]]
    if dtype.startswith("float"):  # rounding is no loss, and what is infinite stays so
        np.save(tmp_path / "x.npy", np.array([[0.1, -np.inf]]))
        found = answered(capfd, tmp_path, prefix, tmp_path / "x.npy")
        assert found.tolist() == [np.array([0.1, -np.inf], dtype).tolist()]


def test_one_image_table_or_array_is_not_for_several_inputs(mx, capfd, tmp_path: Path) -> None:
    image, extra = mx.sym.var("img", shape=(1, 3, 8, 8)), mx.sym.var("extra", shape=(1, 3))
    pooled = mx.sym.Pooling(image, global_pool=True, kernel=(1, 1), pool_type="avg")
    dense = mx.sym.FullyConnected(pooled, num_hidden=3, name="fc") + extra
    prefix = saved(mx, tmp_path, "two", dense, fc_weight=np.ones((3, 3), "f4"), fc_bias=np.zeros(3, "f4"))
    picture(tmp_path / "x.png", np.zeros((8, 8, 3), "uint8"))
    records = mx.recordio.MXRecordIO(str(tmp_path / "x.rec"), "w")
    records.write(mx.recordio.pack(mx.recordio.IRHeader(0, 1.0, 0, 0), (tmp_path / "x.png").read_bytes()))
    records.close()
    (tmp_path / "x.csv").write_text("1,2,3\n")
    np.save(tmp_path / "x.npy", np.zeros((1, 3), "f4"))
    for name in ("x.png", "x.rec", "x.csv", "x.npy"):
        words = (f"{name}' has ", "the model has the inputs img, extra: give an .npz with an array of each name")
        refused(command(capfd, "run", prefix, tmp_path / name), 2, *words)
        refused(command(capfd, "quantize", prefix, "--data", tmp_path / name, "-o", tmp_path / "q"), 2, *words)


def without_rows(mx, folder: Path) -> Path:
    data, one = mx.sym.var("data", shape=(1, 2)), mx.sym.var("w")
    product = mx.sym.broadcast_mul(data, one)
    outputs = mx.sym.Group([product, mx.sym.transpose(product, name="t"), mx.sym.sum(product, name="s")])
    return saved(mx, folder, "sums", outputs, w=np.ones((1, 2), "f4"))


def test_outputs_without_rows_are_saved_of_one_call_and_not_of_several(mx, capfd, tmp_path: Path) -> None:
    prefix, out = without_rows(mx, tmp_path), tmp_path / "answers.npz"
    values = np.arange(260, dtype="f4").reshape(130, 2)
    np.save(tmp_path / "x.npy", values[:64])
    assert command(capfd, "run", prefix, tmp_path / "x.npy", "-o", out).status == 0
    with np.load(out) as found:
        assert found["t_output"].tolist() == values[:64].T.tolist() and found["s_output"] == values[:64].sum()
    out.unlink()
    for rows in (128, 130):
        np.save(tmp_path / "x.npy", values[:rows])
        done = command(capfd, "run", prefix, tmp_path / "x.npy", "-o", out)
        refused(done, 1, "the output 't_output' has the shape (2, 64) for 64 rows of inputs", "at most 64 rows")
        assert not out.exists()


@pytest.mark.parametrize("name", ["file", "allow_pickle", "args", "a/b"])
def test_arrays_of_any_name_are_saved(mx, capfd, tmp_path: Path, name: str) -> None:
    data, weight = mx.sym.var("data", shape=(1, 2)), mx.sym.var(name)
    symbol = mx.sym.Group([mx.sym.broadcast_mul(data, weight, name="o"), data])
    prefix = saved(mx, tmp_path, "m", symbol, **{name: np.array([[2, 3]], "f4")})
    done = command(capfd, "convert", prefix, tmp_path / "copy", "--format", "npz")
    assert done.status == 0, done
    with np.load(tmp_path / "copy.npz") as found:
        assert found.files == [name] and found[name].tolist() == [[2, 3]]
    np.save(tmp_path / "x.npy", np.ones((1, 2), "f4"))
    assert command(capfd, "run", prefix, tmp_path / "x.npy", "-o", tmp_path / "y.npz").status == 0


def test_an_output_of_any_name_is_saved(mx, capfd, tmp_path: Path) -> None:
    data = mx.sym.var("file", shape=(1, 2))
    prefix = saved(mx, tmp_path, "m", mx.sym.Group([data * 2, data]))
    np.save(tmp_path / "x.npy", np.ones((1, 2), "f4"))
    done = command(capfd, "run", prefix, tmp_path / "x.npy", "-o", tmp_path / "y.npz")
    assert done.status == 0, done
    with np.load(tmp_path / "y.npz") as found:
        assert found["file"].tolist() == [[1, 1]] and set(found.files) > {"inputs", "file"}


def test_a_parameter_that_safetensors_has_no_name_for_is_refused(mx, capfd, tmp_path: Path) -> None:
    symbol = mx.sym.broadcast_mul(mx.sym.var("data", shape=(1, 2)), mx.sym.var("__metadata__"))
    prefix = saved(mx, tmp_path, "m", symbol, __metadata__=np.ones((1, 2), "f4"))
    done = command(capfd, "convert", prefix, tmp_path / "copy", "--format", "safetensors")
    refused(done, 1, "'__metadata__'", "--rename gives another")
    assert not list(tmp_path.glob("copy*"))


def test_a_copy_that_was_not_compared_is_neither_good_nor_bad(mx, capfd, tmp_path: Path, monkeypatch) -> None:
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "onnxruntime" else find(name))
    words = ("--format", "onnx", "--shape", "1,1,8,8", "--json")
    done = command(capfd, "convert", digits_in(tmp_path), tmp_path / "copy", *words)
    assert done.status == 0 and json.loads(done.out)["good"] is None


def test_new_names_are_looked_up_in_time_that_grows_with_the_nodes(mx, tmp_path: Path) -> None:
    from mxrt.cli._rewrite import _renamed

    nodes = [{"name": f"layer{number}"} for number in range(40_000)]
    begin = time.process_time()
    assert _renamed(nodes, []) == {}
    assert len(_renamed(nodes, ["layer1*=other*"])) == 11111
    assert time.process_time() - begin < 2
    from mxrt.cli._errors import UsageError

    with pytest.raises(UsageError, match="two nodes the name 'layer2'"):
        _renamed(nodes, ["layer3=layer2"])
    # Two nodes of one name may have it after as before.
    assert _renamed([{"name": "a"}, {"name": "a"}, {"name": "b"}], ["b=c"]) == {"b": "c"}


def test_json_has_a_line_for_each_row_of_numbers_and_null_for_what_it_lacks(mx, capsys) -> None:
    from mxrt.cli._out import print_json

    print_json(
        {"rows": [[1.5, float("nan")], [float("inf"), -2]], "none": [], "names": ("a", 'say "b"'), 3: {"deep": {}}}
    )
    text = capsys.readouterr().out
    assert json.loads(text) == {
        "rows": [[1.5, None], [None, -2]],
        "none": [],
        "names": ["a", 'say "b"'],
        "3": {"deep": {}},
    }
    assert "    [1.5, null],\n    [null, -2]\n" in text

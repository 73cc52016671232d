"""Models written as ONNX, by `mxrt convert --format onnx` and by MXNet's function, against the
evaluator of ONNX.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands import command, digits_in, refused, tiny
from support import MODELS, mxrt

onnx = pytest.importorskip("onnx")

PERCEPTRON = MODELS / "module_mlp" / "module_mlp"
SHAPE = ("--shape", "1,1,8,8")


def evaluated(file: Path, **inputs: np.ndarray) -> list[Any]:
    """The answers of a file by ONNX's evaluator, once the file has been checked."""
    from onnx.reference import ReferenceEvaluator

    onnx.checker.check_model(str(file), full_check=True)
    model = ReferenceEvaluator(str(file))
    assert model.input_names == list(inputs)
    return model.run(None, inputs)


def test_a_copy_as_onnx_answers_as_mxnet_did(mx, capfd, tmp_path: Path) -> None:
    with np.load(MODELS / "digits_cnn" / "golden.npz") as saved:
        image, expected = saved["b3.in.data"], saved["b3.out.0"]
    arguments = ("convert", digits_in(tmp_path), tmp_path / "copy", "--format", "onnx", "--shape", "3,1,8,8")
    done = command(capfd, *arguments)
    assert done.status == 0, done
    assert "shapes and no others: data (3, 1, 8, 8)" in done.out
    assert sorted(path.name for path in tmp_path.glob("copy*")) == ["copy.onnx"]
    np.testing.assert_allclose(evaluated(tmp_path / "copy.onnx", data=image)[0], expected, atol=2e-4)
    refused(command(capfd, *arguments), 2, "copy.onnx' exists", "--force")


def test_a_copy_as_onnx_has_its_new_names_and_no_label(mx, capfd, tmp_path: Path) -> None:
    with np.load(MODELS / "module_mlp" / "golden.npz") as saved:
        data, expected = saved["b3.in.data"], saved["b3.out.0"]
    done = command(
        capfd, "convert", PERCEPTRON, tmp_path / "p", "--format", "onnx", "--shape", "3,64", "--rename", "data=rows"
    )
    assert done.status == 0 and "label" not in done.out, done
    np.testing.assert_allclose(evaluated(tmp_path / "p.onnx", rows=data)[0], expected, atol=1e-5)


def test_answers_of_a_copy_as_onnx_are_compared_where_onnxruntime_is_installed(mx, tmp_path: Path) -> None:
    (tmp_path / "onnxruntime.py").write_text(
        "from onnx.reference import ReferenceEvaluator\n__version__ = '1'\n"
        "class InferenceSession:\n"
        "    def __init__(self, file, providers): self.model = ReferenceEvaluator(file)\n"
        "    def get_inputs(self):\n"
        "        shape = lambda one: [d.dim_value for d in one.type.tensor_type.shape.dim]\n"
        "        return [type('I', (), {'name': i.name, 'shape': shape(i)}) for i in self.model.proto_.graph.input]\n"
        "    def run(self, names, feeds): return self.model.run(names, feeds)\n"
    )
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    with np.load(MODELS / "digits_cnn" / "eval.npz") as saved:
        np.savez(tmp_path / "x.npz", data=saved["in.data"][:5], label=saved["label"][:5])
    result = mxrt(
        "convert", str(digits_in(tmp_path)), str(tmp_path / "copy"), "--format", "onnx", "--shape", "2,1,8,8",
        "--data", str(tmp_path / "x.npz"), env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "digitsnet_dense0_fwd_output: as the model" in result.stdout
    assert "accuracy 1.0000, that of the model 1.0000" in result.stdout


def test_without_onnxruntime_the_copy_is_written_and_the_command_to_compare_it_is_said(
    mx, capfd, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "onnxruntime" else find(name))
    done = command(capfd, "convert", digits_in(tmp_path), tmp_path / "copy", "--format", "onnx", *SHAPE)
    assert done.status == 0 and "pip install onnxruntime" in done.err, done


def test_what_cannot_be_a_copy_as_onnx_is_named(mx, capfd, tmp_path: Path) -> None:
    def convert(model: object, *words: str):
        return command(capfd, "convert", model, tmp_path / "copy", "--format", "onnx", *words)

    refused(convert(digits_in(tmp_path), "--float16", *SHAPE), 2, "--float16 and --format onnx")
    done = convert(MODELS / "lstm_rows" / "lstm_rows", "--shape", "2,8,8")
    assert done.status == 1, done
    refused(done, 1, "cannot be written as ONNX: operator", "mx.onnx.export_model")
    assert not list(tmp_path.glob("copy*"))


def test_mxnets_function_writes_what_it_is_given_as_files_or_as_objects(mx, tmp_path: Path) -> None:
    with np.load(MODELS / "module_mlp" / "golden.npz") as saved:
        data, expected = saved["b3.in.data"], saved["b3.out.0"]
    symbol, arguments, auxiliary = mx.model.load_checkpoint(str(PERCEPTRON), 5)
    forms = {
        "files": (f"{PERCEPTRON}-symbol.json", f"{PERCEPTRON}-0005.params"),
        "a list": (symbol, [arguments, auxiliary]),
        "one dictionary": (symbol, {**arguments, **auxiliary}),
    }
    for name, (sym, params) in forms.items():
        file = str(tmp_path / f"{name}.onnx")
        assert mx.onnx.export_model(sym, params, [(3, 64)], np.float32, file) == file
        np.testing.assert_allclose(evaluated(Path(file), data=data)[0], expected, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"in_shapes": None}, "MXNetValueError", "expected one for each of the inputs data"),
        ({"in_shapes": [(1, 2, 4, 4), (1,)]}, "MXNetValueError", "in_shapes has 2 shapes"),
        ({"in_types": "float16"}, "MXNetNotImplementedError", "expected float32"),
        ({"dynamic": True}, "MXNetNotImplementedError", "dynamic"),
        ({"params": 3}, "MXNetTypeError", "params is int"),
        ({"sym": 3}, "MXNetTypeError", "sym is int"),
        ({"onnx_file_path": "/proc/self/x.onnx"}, "MXNetError", "'/proc/self/x.onnx' cannot be written"),
    ],
)
def test_what_mxnets_function_cannot_write_is_named(mx, tmp_path: Path, options, kind: str, words: str) -> None:
    base = tiny(tmp_path)
    given = {"sym": f"{base}-symbol.json", "params": f"{base}-0000.params", "in_shapes": [(1, 2, 4, 4)]}
    given["onnx_file_path"] = str(tmp_path / "x.onnx")
    with pytest.raises(getattr(mx.base, kind), match=words):
        mx.onnx.export_model(**{**given, **options})
    assert not list(tmp_path.glob("*.onnx*"))

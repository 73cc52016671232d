"""Layers, losses, cells and networks of the zoo answer as MXNet 1.9.1 did, under the same names."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import gluon_cases as cases

RECORDED = json.loads(cases.RECORDED.read_text())


def agree(got, want, rtol: float, atol: float, where: str = "") -> None:
    """Compares nested lists and dictionaries; numbers may differ a little."""
    if isinstance(want, dict):
        assert got.keys() == want.keys(), where
        for key in want:
            agree(got[key], want[key], rtol, atol, f"{where}.{key}")
    elif isinstance(want, list) and want and all(isinstance(value, float) for value in want):
        np.testing.assert_allclose(got, want, rtol=rtol, atol=atol * max(map(abs, want)), err_msg=where)
    elif isinstance(want, list):
        assert len(got) == len(want), where
        for place, (one, other) in enumerate(zip(got, want, strict=True)):
            agree(one, other, rtol, atol, f"{where}[{place}]")
    else:
        assert got == want, where


def check(got, want, rtol: float = 2e-5, atol: float = 2e-6) -> None:
    agree(json.loads(json.dumps(got)), want, rtol, atol)


def needs(mx, *operators: str) -> None:
    known = set(mx._mxrt.operator_names())
    missing = [name for name in operators if name not in known]
    if missing:
        pytest.skip(f"operators that are not registered: {', '.join(missing)}")


OPERATORS = {
    "GroupNorm": "GroupNorm",
    "ReflectionPad2D": "Pad",
    "BatchNormReLU": "_contrib_BatchNormWithReLU",
    "DeformableConvolution": "_contrib_DeformableConvolution",
    "ModulatedDeformableConvolution": "_contrib_ModulatedDeformableConvolution",
    "CTC": "CTCLoss",
}


@pytest.mark.parametrize("name", cases.LAYERS)
def test_layer(mx, name: str) -> None:
    if name in OPERATORS:
        needs(mx, OPERATORS[name])
    check(cases.layer(mx, name), RECORDED["layers"][name])


def test_embedding(mx) -> None:
    check(cases.embedding(mx), RECORDED["embedding"])


@pytest.mark.parametrize("name", cases.LOSSES)
def test_loss(mx, name: str) -> None:
    if name in OPERATORS:
        needs(mx, OPERATORS[name])
    check(cases.loss(mx, name), RECORDED["losses"][name])


@pytest.mark.parametrize("name", cases.CELLS)
def test_cell(mx, name: str) -> None:
    check(cases.cell(mx, name), RECORDED["cells"][name])


@pytest.mark.parametrize("name", cases.CONV_CELLS)
def test_convolutional_cell(mx, name: str) -> None:
    check(cases.conv_cell(mx, name), RECORDED["conv_cells"][name])


@pytest.mark.parametrize("name", cases.FUSED)
def test_fused_layer(mx, name: str) -> None:
    try:
        needs(mx, "RNN", "_rnn_param_concat")
    except pytest.skip.Exception:
        with pytest.raises(NotImplementedError, match=r"operator RNN"):
            cases.fused(mx, name)
        raise
    check(cases.fused(mx, name), RECORDED["fused"][name])


@pytest.mark.parametrize(
    "name", [name if name in cases.QUICK else pytest.param(name, marks=pytest.mark.slow) for name in cases.MODELS]
)
def test_network_of_the_zoo(mx, name: str) -> None:
    check(cases.model(mx, name), RECORDED["models"][name], rtol=1e-4, atol=2e-5)


def test_weights_are_read_from_files(mx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vision = mx.gluon.model_zoo.vision
    monkeypatch.setenv("MXNET_HOME", str(tmp_path))
    with pytest.raises(NotImplementedError, match=r"models.squeezenet1\.1-33ba0f93\.params"):
        vision.squeezenet1_1(pretrained=True)
    net = vision.squeezenet1_1(classes=3)
    net.initialize()
    x = mx.nd.ones((1, 3, 224, 224))
    want = net(x).asnumpy()
    (tmp_path / "models").mkdir()
    net.save_parameters(str(tmp_path / "models" / "squeezenet1.1.params"))
    assert np.array_equal(vision.get_model("squeezenet1.1", pretrained=True, classes=3)(x).asnumpy(), want)
    (tmp_path / "models" / "squeezenet1.1-33ba0f93.params").write_bytes(b"others")
    with pytest.raises(ValueError, match="SHA-1"):
        vision.squeezenet1_1(pretrained=True, classes=3)
    with pytest.raises(ValueError, match=r"not supported.*\n.*alexnet"):
        vision.get_model("resnet19_v1")


def test_batches_are_split(mx, tmp_path: Path) -> None:
    utils, data = mx.gluon.utils, mx.nd.arange(10).reshape((5, 2))
    parts = utils.split_and_load(data, [mx.cpu(0), mx.cpu(1)], even_split=False)
    assert [(part.shape, part.context) for part in parts] == [((3, 2), mx.cpu(0)), ((2, 2), mx.cpu(1))]
    assert [part.shape for part in utils.split_data(data, 2, batch_axis=1)] == [(5, 1), (5, 1)]
    with pytest.raises(ValueError, match="evenly split"):
        utils.split_data(data, 2)
    file = tmp_path / "model.zip"
    with pytest.raises(NotImplementedError, match="downloads nothing"):
        utils.download("https://example.org/model.zip", path=str(file))
    file.write_bytes(b"abc")
    assert utils.check_sha1(str(file), "a9993e364706816aba3e25717850c26c9cd0d89d")
    assert utils.download("https://example.org/model.zip", path=str(tmp_path)) == str(file)


def test_packages_add_models_of_their_own(mx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = mx.gluon.model_zoo.model_store
    monkeypatch.setitem(store._model_sha1, "mine", "a9993e364706816aba3e25717850c26c9cd0d89d")
    (tmp_path / "mine-a9993e36.params").write_bytes(b"abc")
    assert store.get_model_file("mine", root=str(tmp_path)) == str(tmp_path / "mine-a9993e36.params")
    store.purge(str(tmp_path))
    assert not list(tmp_path.iterdir())

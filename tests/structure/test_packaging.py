"""The content of the installed wheel."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re

import pytest

from support import MODELS, ROOT


@pytest.fixture(scope="module")
def files() -> set[str]:
    return {str(path) for path in importlib.metadata.files("mxrt") or []}


def test_types_licence_and_demo_data_are_there(mx, files: set[str]) -> None:
    for wanted in ("mxrt/py.typed", "mxrt/demo/data/digits_cnn-0000.params", "mxrt/demo/data/README.md"):
        assert wanted in files
    for name in ("LICENSE", "LICENSE-THIRD-PARTY"):
        assert any(re.fullmatch(rf"mxrt-.*\.dist-info/licenses/{name}", path) for path in files), name
    assert any(name.endswith(".pyi") for name in files)
    assert not [name for name in files if not name.startswith(("mxrt/", "mxrt_command/", "mxrt-", "../"))]


def test_the_licence_of_every_crate_that_is_compiled_in_comes_along(mx) -> None:
    [path] = [p for p in importlib.metadata.files("mxrt") or [] if p.name == "LICENSE-THIRD-PARTY"]
    text = path.read_text()
    lock = (ROOT / "Cargo.lock").read_text()
    for crate in ("pyo3", "numpy", "serde_json", "parking_lot", "half", "smallvec"):
        version = re.search(rf'name = "{crate}"\nversion = "(.+)"', lock)
        assert version, crate
        assert f"{crate} {version[1]} (" in text
    assert "Permission is hereby granted, free of charge" in text


def test_each_wheel_of_a_release_is_known_by_its_name() -> None:
    spec = importlib.util.spec_from_file_location("check_wheel", ROOT / "scripts" / "check_wheel.py")
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    system = "manylinux2014_x86_64.manylinux_2_17_x86_64.whl"
    found = {tag: script.kind(f"mxrt-0.1.0-{tag}-{system}") for tag in ("cp310-abi3", "cp314-cp314t")}
    assert [one[1:] for one in found.values()] == [("abi3.", "PyInit__mxrt"), ("cpython-314t-", "PyInit__mxrt")]
    what, suffix, begins = script.kind(f"mxrt-0.1.0-cp315-abi3.abi3t-{system}")
    assert "3.15, with its lock and without" in what and (suffix, begins) == ("abi3t-", "PyModExport__mxrt")
    assert script.kind(f"mxrt-0.1.0-cp315-cp315-{system}") == ("", "", "")


def test_it_needs_numpy_only(mx) -> None:
    required = [r for r in importlib.metadata.requires("mxrt") or [] if "extra ==" not in r]
    assert [re.split(r"[^\w-]", r)[0] for r in required] == ["numpy"]


def test_the_version_stands_in_one_place(mx) -> None:
    version = re.search(r'^\[workspace\.package\]\nversion = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.M)
    assert version, "Cargo.toml: the first line of [workspace.package] gives the version"
    assert mx.__version__ == version[1]
    assert "\nversion" not in (ROOT / "pyproject.toml").read_text()


def test_the_demo_carries_the_models_that_are_tested() -> None:
    data = ROOT / "python" / "mxrt" / "demo" / "data"
    for source, copy in (
        ("digits_cnn/digits_cnn-symbol.json", "digits_cnn-symbol.json"),
        ("digits_cnn/digits_cnn-0000.params", "digits_cnn-0000.params"),
        ("digits_cnn/meta.json", "digits_cnn-meta.json"),
        ("zoo/resnet18_v1/symbol.json", "resnet18_v1-symbol.json"),
        ("zoo/resnet18_v1/golden.npz", "resnet18_v1-golden.npz"),
    ):
        assert (MODELS / source).read_bytes() == (data / copy).read_bytes(), copy

"""Files that commands write: links, devices, older copies, and Ctrl-C in the middle."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from commands import command, digits_in, picture, refused
from support import digits, run

SHAPE = ("--shape", "1,1,8,8")
needs_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")

#: Commands that write `place`, and the arguments that say so.
WRITING = {
    "run": ("random", *SHAPE, "-o", "{place}.npz"),
    "profile": (*SHAPE, "--seconds", "0.01", "--trace", "{place}.json"),
    "plan": (*SHAPE, "--html", "{place}.html"),
    "convert": ("{place}", *SHAPE, "--force"),
    "convert npz": ("{place}", *SHAPE, "--force", "--format", "npz"),
    "convert safetensors": ("{place}", *SHAPE, "--force", "--format", "safetensors"),
    "convert onnx": ("{place}", *SHAPE, "--force", "--format", "onnx"),
    "bench": (*SHAPE, "--seconds", "0.01", "--callers", "1", "--save", "{place}.json"),
    "bench plot": (*SHAPE, "--seconds", "0.01", "--callers", "1", "--plot", "{place}.png"),
    "tune": (*SHAPE, "--seconds", "0.01", "--table", "{place}.txt"),
}
ENDINGS = {"run": ".npz", "plan": ".html", "bench plot": ".png", "convert": "-0000.params", "tune": ".txt"}
ENDINGS |= {f"convert {form}": f".{form}" for form in ("npz", "safetensors", "onnx")}


def write(capfd, name: str, folder: Path):
    (folder / "m").mkdir()
    words = [word.format(place=folder / "made") for word in WRITING[name]]
    return command(capfd, name.split()[0], digits_in(folder / "m"), *words)


def target(name: str, folder: Path) -> Path:
    return folder / f"made{ENDINGS.get(name, '.json')}"


@pytest.mark.parametrize("name", WRITING)
def test_a_link_is_followed_and_stays_a_link(mx, capfd, tmp_path: Path, name: str) -> None:
    (tmp_path / "far").mkdir()
    link = target(name, tmp_path)
    link.symlink_to(tmp_path / "far" / "real")
    done = write(capfd, name, tmp_path)
    assert done.status == 0, done
    assert link.is_symlink()
    assert [(one.name, one.stat().st_size > 0) for one in (tmp_path / "far").iterdir()] == [("real", True)]


@needs_full
@pytest.mark.parametrize("name", [name for name in WRITING if name != "tune"])
def test_a_device_is_written_and_stays_a_device(mx, capfd, tmp_path: Path, name: str) -> None:
    link = target(name, tmp_path)
    link.symlink_to("/dev/full")
    done = write(capfd, name, tmp_path)
    assert done.status == 1, done
    last = done.err.splitlines()[-1]
    assert str(link) in last and "No space left on device" in last, done.err
    assert re.search(r"; free some space there, or name another place \[MX-[A-Z]+\]$", last), done.err
    assert link.is_symlink() and os.path.exists("/dev/full") and not os.path.isfile("/dev/full")
    assert sorted(one.name for one in tmp_path.iterdir()) == sorted(["m", link.name])


def test_a_table_of_tune_is_a_file(mx, capfd, tmp_path: Path) -> None:
    done = command(capfd, "tune", digits_in(tmp_path), *SHAPE, "--seconds", "0.01", "--table", os.devnull)
    refused(done, 2, f"--table '{os.devnull}' is a device or a pipe; expected the name of a file")


@needs_full
def test_a_copy_that_cannot_be_written_leaves_the_older_one(mx, capfd, tmp_path: Path) -> None:
    (tmp_path / "made-0000.params").write_bytes(b"older")
    (tmp_path / "made-symbol.json").symlink_to("/dev/full")
    done = write(capfd, "convert", tmp_path)
    refused(done, 1, str(tmp_path / "made-symbol.json"), "No space left on device", "nothing was saved")
    assert (tmp_path / "made-0000.params").read_bytes() == b"older"


def test_a_quantized_copy_that_cannot_be_written_leaves_both_files_of_the_older_one(mx, capfd, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", data=digits(4)[0])
    words = ("quantize", digits_in(tmp_path), "--data", tmp_path / "x.npz", "--out", tmp_path / "made")
    assert command(capfd, *words).status == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    (tmp_path / "made-symbol.json").write_text("older")
    # The graph has room, and the parameters have none.
    most = len(before["made-0000.params"]) - 1
    assert len(before["made-symbol.json"]) < most
    program = (
        "import resource, signal, sys; from mxrt.cli._main import main; "
        f"signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, ({most}, {most})); "
        "sys.exit(main(sys.argv[1:]))"
    )
    done = run([sys.executable, "-B", "-c", program, *map(str, words), "--force"])
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1 and "made-0000.params' failed: File too large; nothing was saved" in last, done
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert after == {**before, "made-symbol.json": b"older"}


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"image": np.zeros((2, 1, 8, 8), "f4")}, "no array 'data'; it has image"),
        ({"data": np.zeros((2, 3, 8, 8), "f4")}, "wanted (2, 1, 8, 8)"),
        ({"data": np.zeros((3, 1, 8, 8), "f4"), "label": np.zeros(2)}, "a label of shape (2,); expected (3,)"),
        ({"data": np.zeros((1, 1, 8, 8), "f4"), "label": np.array(["a"])}, "label.npy' holds an array of <U1"),
    ],
)
def test_samples_that_do_not_fit_end_a_conversion_before_anything_is_written(
    mx, capfd, tmp_path: Path, arrays: dict[str, np.ndarray], words: str
) -> None:
    np.savez(tmp_path / "x.npz", **arrays)
    done = command(capfd, "convert", digits_in(tmp_path), tmp_path / "made", *SHAPE, "--data", tmp_path / "x.npz")
    refused(done, 1, "x.npz", words)
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith("made")] == []


def test_samples_that_do_not_fit_a_model_are_named_by_quantize(mx, capfd, tmp_path: Path) -> None:
    (tmp_path / "few.csv").write_text("1,2,3\n")
    model = digits_in(tmp_path)
    np.save(tmp_path / "x.npy", np.zeros((2, 1, 8, 8), "f4"))
    (tmp_path / "labels.txt").write_text("1\ntwo\n")
    words = ("quantize", model, *SHAPE, "--out", tmp_path / "made")
    refused(command(capfd, *words, "--data", tmp_path / "few.csv"), 1, "few.csv", "3 columns; expected 64")
    done = command(capfd, *words, "--data", tmp_path / "x.npy", "--labels", tmp_path / "labels.txt")
    refused(done, 1, "labels.txt", "'two' is no whole number")
    np.save(tmp_path / "x.npy", np.zeros((2, 3, 8, 8), "f4"))
    done = command(capfd, "quantize", model, "--out", tmp_path / "made", "--data", tmp_path / "x.npy")
    refused(done, 1, "x.npy", "wanted (1, 1, 8, 8)")
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith("made")] == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("int8", "the model is quantized already: _contrib_quantize_v2 'data_quantize' is on 8-bit integers"),
        ("half", "layer 'fc' computes in float16, and 8-bit integers are made of layers in float32; give the model in"),
        ("pool", "no layer of the model can be quantized; expected at least one FullyConnected"),
    ],
)
def test_a_model_that_cannot_be_quantized_is_named_with_the_reason_and_nothing_is_written(
    mx, capfd, tmp_path: Path, name: str, words: str
) -> None:
    data, half = mx.sym.var("data"), {"dtype": "float16"}
    graph, held = {
        "int8": (mx.sym.contrib.quantize_v2(data, name="data_quantize")[0], {}),
        "half": (
            mx.sym.FullyConnected(mx.sym.cast(data, **half), num_hidden=1, name="fc"),
            {"arg:fc_weight": mx.nd.ones((1, 64), **half), "arg:fc_bias": mx.nd.ones(1, **half)},
        ),
        "pool": (mx.sym.Pooling(data, kernel=(2, 2), name="p"), {}),
    }[name]
    graph.save(str(tmp_path / "m-symbol.json"))
    mx.nd.save(str(tmp_path / "m-0000.params"), held)
    np.save(tmp_path / "x.npy", np.ones((2, 1, 8, 8), "f4"))
    words_of = ("quantize", tmp_path / "m", *SHAPE, "--data", tmp_path / "x.npy", "--out", tmp_path / "made")
    refused(command(capfd, *words_of), 1, words, "[MX-MODEL]")
    assert not list(tmp_path.glob("made*"))


def test_the_labels_of_an_npz_give_quantize_an_accuracy(mx, capfd, tmp_path: Path) -> None:
    values, labels = digits(40)
    np.savez(tmp_path / "x.npz", data=values, label=labels)
    words = ("quantize", digits_in(tmp_path), *SHAPE, "--out", tmp_path / "made", "--data", tmp_path / "x.npz")
    done = command(capfd, *words, "--json")
    assert (done.status, done.json["measure"]) == (0, "accuracy"), done
    np.savez(tmp_path / "x.npz", data=values, label=labels[:3])
    refused(command(capfd, *words, "--force"), 1, "3 labels for 40 samples")


def test_a_copy_on_integers_is_smaller_and_every_command_takes_it(mx, capfd, tmp_path: Path) -> None:
    values, _ = digits(40)
    np.save(tmp_path / "x.npy", values)
    model = digits_in(tmp_path)
    made = tmp_path / "made"
    done = command(capfd, "quantize", model, "--out", made, "--data", tmp_path / "x.npy", "--budget", "none", "--json")
    assert done.status == 0 and done.json["bytes_after"] < 0.3 * done.json["bytes_before"], done
    # The first layer says how many channels it takes, as it does for the model.
    shapes, counts = [], []
    for one in (model, made):
        done = command(capfd, "inspect", one, "--json")
        assert done.status == 0, done
        shapes.append(done.json["inputs"][0]["shape"])
        counts.append(sum(layer["macs"] for layer in done.json["layers"]))
    assert shapes[0] == shapes[1] and counts[0] == counts[1] > 0
    # Weights belong to the layers that read them: 144 integers, 16 steps, four of BatchNorm.
    quantizing, first = done.json["layers"][:2]
    assert (quantizing["operator"], first["operator"]) == ("_contrib_quantize_v2", "_sg_mkldnn_conv")
    assert first["parameters"] == 144 + 16 + 4 * 16
    done = command(capfd, "convert", made, tmp_path / "again", "--rename", "data=x", "--json")
    assert done.status == 0 and done.json["outputs"][0]["largest_error"] == 0, done
    done = command(capfd, "convert", made, tmp_path / "half", "--float16", *SHAPE)
    refused(done, 1, "is int8; a model on 8-bit integers stays unchanged")


NO_PREFIX = "is no prefix of the names of files; expected one such as '{}'"


@pytest.mark.parametrize(
    ("prefix", "example"),
    [("", "copy"), (".", "copy"), ("./", "copy"), ("/", "/copy"), ("..", "../copy"), ("made/", "made/copy")],
)
@pytest.mark.parametrize("words", ["convert {m}", "quantize {m} --data random --out"])
def test_a_prefix_that_names_no_file_is_an_error_of_the_command_line(
    mx, capfd, tmp_path: Path, monkeypatch, words: str, prefix: str, example: str
) -> None:
    (tmp_path / "here" / "made").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    model = digits_in(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    done = command(capfd, *words.format(m=model).split(), prefix, *SHAPE)
    refused(done, 2, f"OUT '{prefix}' {NO_PREFIX.format(example)}")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("prefix", ["", ".", ".."])
def test_lists_of_images_without_a_name_are_not_written(mx, capfd, tmp_path: Path, monkeypatch, prefix: str) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    picture(tmp_path / "here" / "one.png", np.zeros((8, 8), "uint8"))
    refused(command(capfd, "im2rec", "--list", prefix, "."), 2, f"PREFIX '{prefix}' is no prefix of the names of files")
    assert [path.name for path in tmp_path.iterdir()] == ["here"]


def test_ctrl_c_leaves_no_half_written_records(mx, capfd, tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    picture(tmp_path / "images" / "one.png", np.zeros((8, 8), "uint8"))
    assert command(capfd, "im2rec", "--list", tmp_path / "made", tmp_path / "images").status == 0
    program = (
        "import os, signal, sys, threading; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from mxrt import recordio; from mxrt.cli._main import main; "
        "recordio.MXIndexedRecordIO.write_idx = "
        "lambda *_: (os.kill(os.getpid(), signal.SIGINT), threading.Event().wait()); "
        "sys.exit(main(sys.argv[1:]))"
    )
    done = run([sys.executable, "-c", program, "im2rec", str(tmp_path / "made"), str(tmp_path / "images")])
    assert (done.returncode, done.stderr) == (130, "\ninterrupted\n"), done
    assert sorted(one.name for one in tmp_path.iterdir()) == ["images", "made.lst"]


def test_ctrl_c_while_mxrt_is_imported_ends_a_command_in_a_word(mx) -> None:
    program = (
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); import mxrt_command\n"
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'numpy': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder()); sys.exit(mxrt_command.main(['info']))"
    )
    done = run([sys.executable, "-c", program])
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "\ninterrupted\n"), done


def test_ctrl_c_ends_a_server_whose_models_still_load(mx, tmp_path: Path) -> None:
    # pclose waits in native code, as work of the engine does, and tells its child so before.
    program = (
        "import ctypes, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from mxrt.cli._main import main; from mxrt.serve import Server\n"
        "libc = ctypes.CDLL(None); libc.popen.restype = ctypes.c_void_p\n"
        "def start(self):\n"
        "    words = b'read told; kill -INT $PPID; exec tail --pid=$PPID -f /dev/null >/dev/null 2>&1'\n"
        "    child = libc.popen(words, b'w')\n"
        "    libc.pclose(ctypes.c_void_p(child))\n"
        "Server.start = start; sys.exit(main(sys.argv[1:]))"
    )
    done = run([sys.executable, "-c", program, "serve", str(digits_in(tmp_path)), "--port", "0", *SHAPE], timeout=20)
    assert (done.returncode, done.stderr) == (130, "\ninterrupted\n"), done


def test_lists_of_images_in_a_folder_that_is_not_there_are_an_error_of_the_command_line(
    mx, capfd, tmp_path: Path
) -> None:
    done = command(capfd, "im2rec", "--list", tmp_path / "no" / "made", tmp_path)
    refused(done, 2, f"there is no folder '{tmp_path / 'no'}'")


def test_lists_of_no_images_are_not_written(mx, capfd, tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    done = command(capfd, "im2rec", "--list", tmp_path / "made", tmp_path / "images")
    refused(done, 2, "has no images; expected files that end in .jpeg, .jpg", "--recursive")
    assert list(tmp_path.iterdir()) == [tmp_path / "images"]


def test_the_interpreter_of_another_engine_is_found_by_its_name(mx, capfd, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "otherpython").write_text("#!/bin/sh\necho no engine >&2\nexit 3\n")
    (tmp_path / "bin" / "otherpython").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    model = digits_in(tmp_path)
    done = command(capfd, "check", model, *SHAPE, "--against", "mxnet", "otherpython")
    assert done.status == 2 and "no engine" in done.err, done
    words = ("--peer-python", "mxnet=otherpython", "--seconds", "0.01", "--callers", "1")
    done = command(capfd, "bench", model, *SHAPE, *words)
    assert "there is no program" not in done.err and "no engine" in done.out + done.err, done


def test_a_check_of_an_empty_repository_says_that_nothing_answered(mx, capfd, tmp_path: Path) -> None:
    done = command(capfd, "serve", "--repository", tmp_path, "--check")
    refused(done, 1, "there is no model, so that nothing has answered; name one, or a repository")
    done = command(capfd, "serve", "--repository", tmp_path, "--check", "--json")
    assert (done.status, done.json) == (1, {"good": False, "models": [], "lacking": []}), done

"""Every command given no model, a reader that has enough, and Ctrl-C."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from commands import command, digits_in, refused, tarred, tiny
from mxrt.cli.commands import COMMANDS
from support import output_of, run, tiny_model

SYMBOL, PARAMS, _, _ = tiny_model()
SHAPE = ("--shape", "1,2,4,4")


def _nothing(folder: Path) -> Path:
    return folder / "tiny"


def _empty(folder: Path) -> Path:
    return folder


def _two(folder: Path) -> Path:
    tiny(folder, "a")
    tiny(folder, "b")
    return folder


def _with(symbol: bytes = SYMBOL, params: bytes = PARAMS) -> Callable[[Path], Path]:
    def made(folder: Path) -> Path:
        (folder / "tiny-symbol.json").write_bytes(symbol)
        (folder / "tiny-0000.params").write_bytes(params)
        return folder / "tiny"

    return made


def _without_parameters(folder: Path) -> Path:
    (folder / "tiny-symbol.json").write_bytes(SYMBOL)
    return folder / "tiny"


def _unreadable_archive(folder: Path) -> Path:
    (folder / "net.zip").write_bytes(b"PK\x03\x04" + bytes(40))
    return folder / "net.zip"


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
#: What stands where a model should, its status, and a word that the sentence has.
SCENARIOS: dict[str, tuple[Callable[[Path], Path], int, str]] = {
    "no file": (_nothing, 2, "tiny-symbol.json"),
    "a folder without a model": (_empty, 2, "hold"),
    "two models in a folder": (_two, 2, "a-symbol.json, b-symbol.json"),
    "a symbol file that is cut": (_with(symbol=SYMBOL[:200]), 1, "symbol"),
    "a parameter file that is cut": (_with(params=PARAMS[:100]), 1, "tiny-0000.params"),
    "a symbol file that is a pointer": (_with(symbol=LFS), 1, "git lfs pull"),
    "a parameter file that is a pointer": (_with(params=LFS), 1, "git lfs pull"),
    "a symbol file of another operator": (_with(symbol=SYMBOL.replace(b'"Activation"', b'"Magic"')), 1, "Magic"),
    "no parameters": (_without_parameters, 2, "parameter"),
    "an archive that is none": (_unreadable_archive, 1, "net.zip"),
}
#: Commands that take a MODEL, with what follows it.
OF_MODELS: dict[str, tuple[str, ...]] = {
    "inspect": SHAPE,
    "run": ("random", *SHAPE),
    "check": SHAPE,
    "profile": (*SHAPE, "--seconds", "0.01"),
    "plan": SHAPE,
    "convert": ("copy", *SHAPE),
    "quantize": ("--data", ".", "--out", "small", *SHAPE),
    "bench": (*SHAPE, "--seconds", "0.01"),
    "tune": (*SHAPE, "--seconds", "0.01"),
    "serve": ("--check", *SHAPE),
}
#: The server finds out as it loads the model.
EXCEPT = {("serve", "no parameters"): 1}


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("name", OF_MODELS)
def test_a_command_says_in_a_sentence_what_is_no_model(mx, capfd, tmp_path, monkeypatch, name, scenario) -> None:
    monkeypatch.chdir(tmp_path)
    make, status, word = SCENARIOS[scenario]
    (tmp_path / "m").mkdir()
    model = make(tmp_path / "m")
    done = command(capfd, name, model, *OF_MODELS[name])
    report = done.out + done.err
    assert "Traceback" not in report and word in report, done
    if name in ("inspect", "check") and done.out:  # whose answer it is
        assert done.status == 1, done
    else:
        refused(done, EXCEPT.get((name, scenario), status), word)


@pytest.mark.parametrize("name", ["check", "serve"])
def test_a_verdict_on_a_model_that_does_not_load_is_json_where_that_is_asked_for(
    mx, capfd, tmp_path: Path, name: str
) -> None:
    model = _with(params=PARAMS[:100])(tmp_path)
    done = command(capfd, name, model, *OF_MODELS[name], "--json")
    assert (done.status, done.json["good"]) == (1, False), done
    assert "tiny-0000.params" in done.out


@pytest.mark.parametrize("name", [name for name in OF_MODELS if name != "serve"])
def test_an_epoch_that_is_not_there_is_named_with_those_that_are(mx, capfd, tmp_path: Path, name: str) -> None:
    refused(command(capfd, name, tiny(tmp_path), "--epoch", "7", *OF_MODELS[name]), 2, "tiny-0007.params", "numbers 0")


@pytest.mark.parametrize("name", [row.name for row in COMMANDS])
def test_an_option_that_there_is_not_is_a_sentence_and_the_status_2(mx, capfd, name: str) -> None:
    done = command(capfd, name, "--nosuch")
    refused(done, 2, f"mxrt {name}", f"mxrt {name} --help says more")


@pytest.mark.skipif(os.geteuid() == 0 and not os.path.exists("/proc/self"), reason="needs a folder nobody can write")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("run", ("random", *SHAPE, "-o", "{place}/o.npz")),
        ("profile", (*SHAPE, "--seconds", "0.01", "--trace", "{place}/t.json")),
        ("plan", (*SHAPE, "--html", "{place}/p.html")),
        ("convert", ("{place}/copy", *SHAPE)),
        ("bench", (*SHAPE, "--seconds", "0.01", "--callers", "1", "--save", "{place}/b.json")),
        ("bench", (*SHAPE, "--seconds", "0.01", "--callers", "1", "--plot", "{place}/b.png")),
        ("tune", (*SHAPE, "--seconds", "0.01", "--table", "{place}/t.txt")),
    ],
)
def test_a_folder_that_cannot_be_written_is_named(mx, capfd, tmp_path: Path, name: str, words: tuple[str, ...]) -> None:
    # Nobody can write there, not even root.
    place = "/proc/self"
    done = command(capfd, name, tiny(tmp_path), *(word.format(place=place) for word in words))
    assert done.status in (1, 2) and done.err.count("\n") >= 1, done
    assert place in done.err.splitlines()[-1] and "Traceback" not in done.err, done


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("run {m} random -o", "--output is empty; expected the name of a file"),
        ("run {m} random --labels", "there is no file '' (--labels)"),
        ("quantize {m} --data random --labels", "there is no file '' (--labels)"),
        ("quantize {m} --data random --html", "--html is empty"),
        ("profile {m} --trace", "--trace is empty"),
        ("plan {m} --html", "--html is empty"),
        ("bench {m} --save", "--save is empty"),
        ("bench {m} --compare", "there is no file '' (--compare)"),
        ("bench {m} --plot", "--plot '': the name says the format"),
        ("tune {m} --table", "--table is empty"),
        ("check {m} --data", "there is no file '' (--data)"),
        ("convert {m} copy --data", "there is no file '' (--data)"),
    ],
)
def test_a_name_that_is_empty_as_that_of_an_unset_variable_is_refused(
    mx, capfd, tmp_path: Path, monkeypatch, words: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = command(capfd, *words.format(m=tiny(tmp_path)).split(), "", *SHAPE)
    refused(done, 2, said)
    assert done.out == "", "nothing ran"


def test_a_folder_is_no_file_to_write(mx, capfd, tmp_path: Path) -> None:
    done = command(capfd, "run", tiny(tmp_path), "random", *SHAPE, "-o", f"{tmp_path}/made/")
    refused(done, 2, f"--output '{tmp_path}/made/' is a folder; expected the name of a file")


MODEL = "'{file}' belongs to the model; name another file"
OTHER = "'{file}' is read or written by the same command; name another file"


@pytest.mark.parametrize(
    ("words", "file", "said"),
    [
        ("run digits_cnn x.npy --output", "x.npy", OTHER),
        ("run digits_cnn x.n* --output", "x.npy", OTHER),
        ("run digits_cnn random --output", "digits_cnn-0000.params", MODEL),
        ("run digits_cnn random --labels names.txt --output", "names.txt", OTHER),
        ("plan digits_cnn --html", "digits_cnn-symbol.json", MODEL),
        ("plan digits_cnn-0000 --html", "link", MODEL),
        ("profile digits_cnn --seconds 0.01 --trace", "digits_cnn-symbol.json", MODEL),
        ("bench digits_cnn --seconds 0.01 --save", "digits_cnn-0000.params", MODEL),
        ("bench digits_cnn --seconds 0.01 --plot made.png --save", "made.png", OTHER),
        ("quantize digits_cnn --data x.npy --html", "digits_cnn-0000.params", MODEL),
        ("quantize digits_cnn --data x.npy --html", "x.npy", OTHER),
        ("quantize digits_cnn --data x.npy --out q --html", "q-symbol.json", OTHER),
    ],
)
def test_a_command_does_not_write_over_what_it_reads_or_writes(
    mx, capfd, tmp_path: Path, monkeypatch, words: str, file: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    digits_in(tmp_path)
    np.save("x.npy", np.ones((3, 1, 8, 8), "float32"))
    Path("names.txt").write_text("one\n")
    Path("link").symlink_to("digits_cnn-symbol.json")
    kept = {path: path.read_bytes() for path in tmp_path.iterdir()}
    option = words.split()[-1]
    done = command(capfd, *words.split(), file, "--shape", "1,1,8,8")
    refused(done, 2, f"{option} {said.format(file=file)}")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == kept


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with what the examples of commands name."""
    folder = tmp_path_factory.mktemp("contract")
    digits_in(folder)
    from commands import picture

    picture(folder / "digit.png", np.zeros((8, 8), "uint8"))
    (folder / "images").mkdir()
    picture(folder / "images" / "one.png", np.zeros((8, 8), "uint8"))
    return folder


#: What each command writes, with words of the sentence where the disk has no room for it.
WRITING: dict[str, tuple[str, str]] = {
    "run": ("run digits_cnn random --shape 1,1,8,8 -o made.npz", "'made.npz'"),
    "profile": ("profile digits_cnn --shape 1,1,8,8 --seconds 0.01 --trace made.json", "'made.json'"),
    "plan": ("plan digits_cnn --shape 1,1,8,8 --html made.html", "'made.html'"),
    "convert": ("convert digits_cnn made --shape 1,1,8,8", "'made-0000.params'"),
    "convert npz": ("convert digits_cnn made --shape 1,1,8,8 --format npz", "'made.npz'"),
    "convert safetensors": ("convert digits_cnn made --shape 1,1,8,8 --format safetensors", "'made.safetensors'"),
    "convert onnx": ("convert digits_cnn made --shape 1,1,8,8 --format onnx", "'made.onnx'"),
    "quantize": ("quantize digits_cnn --data images --size 8,8 --grey --shape 1,1,8,8 -o made", "'made-symbol.json'"),
    "bench": ("bench digits_cnn --shape 1,1,8,8 --seconds 0.01 --save made.json", "'made.json'"),
    "bench plot": ("bench digits_cnn --shape 1,1,8,8 --seconds 0.01 --plot made.png", "'made.png'"),
    "tune": ("tune digits_cnn --shape 1,1,8,8 --seconds 0.01 --table made.txt", "'made.txt'"),
    "lists of images": ("im2rec --list made images", "made.lst'"),
    "an archive": ("inspect packed.tar.gz --shape 1,1,8,8", "TMPDIR"),
}


@pytest.mark.parametrize("what", WRITING)
def test_a_full_disk_is_said_with_the_file_and_nothing_half_written_stays(
    mx, place: Path, tmp_path: Path, what: str
) -> None:
    folder = tmp_path / "place"
    shutil.copytree(place, folder)
    if what == "an archive":
        held = {path.name: path.read_bytes() for path in folder.glob("digits_cnn-*")}
        tarred(folder / "packed.tar.gz", held)
    before = sorted(path.name for path in folder.iterdir())
    words, named = WRITING[what]
    # No file may grow, which is what a full disk does to a program.
    program = (
        "import resource, signal, sys, tempfile; from mxrt.cli._main import main\n"
        "tempfile.tempdir = tempfile.gettempdir()\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    done = run(["bash", "-c", f'cd {folder} && "$0" -B -c "$1" {words} 2>&1 >/dev/null', sys.executable, program])
    assert done.returncode == 1, done
    last = done.stdout.splitlines()[-1]
    assert named in last and re.search(r"\[MX-[A-Z]+\]$", last), done.stdout
    assert "standard output" not in last and "Traceback" not in done.stdout, done.stdout
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.parametrize("room", [0, 30_000])
def test_records_that_cannot_be_written_leave_the_older_ones(mx, capfd, tmp_path: Path, place: Path, room: int) -> None:
    shutil.copytree(place / "images", tmp_path / "images")
    assert command(capfd, "im2rec", "--list", tmp_path / "made", tmp_path / "images").status == 0
    assert command(capfd, "im2rec", tmp_path / "made", tmp_path / "images").status == 0
    before = (tmp_path / "made.rec").read_bytes()
    assert len(before) > 0
    (tmp_path / "made.lst").write_text("0\t0\tone.png\n" * 1000)
    program = (
        "import resource, signal, sys; from mxrt.cli._main import main; "
        f"signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, ({room}, {room})); "
        "sys.exit(main(sys.argv[1:]))"
    )
    done = run([sys.executable, "-B", "-c", program, "im2rec", str(tmp_path / "made"), str(tmp_path / "images")])
    assert done.returncode == 1 and f"'{tmp_path / 'made.rec'}'" in done.stderr, done
    assert "nothing was saved" in done.stderr and "Traceback" not in done.stderr, done
    assert (tmp_path / "made.rec").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["images", "made.idx", "made.lst", "made.rec"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", ["inspect digits_cnn", "serve digits_cnn --check", "serve digits_cnn --print-config"])
def test_an_output_that_is_full_is_told_from_files_that_are(mx, place: Path, words: str, unbuffered: str) -> None:
    program = f"cd {place} && PYTHONUNBUFFERED={unbuffered} mxrt {words} --shape 1,1,8,8 > /dev/full; echo $?"
    done = run(["bash", "-c", program])
    assert done.stdout == "1\n" and done.stderr.count("\n") == 1, done
    assert "the results cannot be written to the standard output: No space left on device" in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", ["--help", "run --help", "--version", ""])
def test_help_that_cannot_be_written_is_an_error_in_a_line(mx, words: str, unbuffered: str) -> None:
    done = run(["bash", "-c", f"PYTHONUNBUFFERED={unbuffered} mxrt {words} > /dev/full; echo $?"])
    wanted = "mxrt: the results cannot be written to the standard output: No space left on device\n"
    assert (done.stdout, done.stderr) == ("1\n", wanted), done
    quiet = run(["bash", "-c", f"PYTHONUNBUFFERED={unbuffered} mxrt {words} | true; mxrt {words} >&-"])
    assert (quiet.stdout, quiet.stderr) == ("", ""), quiet


def test_a_name_in_another_encoding_is_said_in_a_line(mx, place: Path) -> None:
    for locale in ("LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0", "LC_ALL=C.UTF-8"):
        name = "bild_ü" if "=0" in locale else "$'bild_\\xff'"
        copies = "; ".join(f"cp digits_cnn{end} {name}{end}" for end in ("-symbol.json", "-0000.params"))
        done = run(["bash", "-c", f"cd {place}; {copies}; {locale} mxrt inspect {name}; echo $?; rm {name}-*"])
        assert done.stdout == "2\n" and done.stderr.count("\n") == 1, done
        assert "is a name in another encoding than" in done.stderr and "PYTHONUTF8=1" in done.stderr, done


OTHERS = [row for row in COMMANDS if row.name != "demo"]


def test_a_closed_output_and_a_reader_that_has_enough_are_quiet_for_every_command(mx, place: Path) -> None:
    """One shell runs them all: a process for each takes long."""
    program = f"cd {place} || exit\n"
    for row in OTHERS:
        text = f"mxrt {row.name} {row.example}"
        program += f"{text} >&- 2> {row.name}.closed; echo $? > {row.name}.status\n"
        program += f"PYTHONUNBUFFERED=1 {text} 2> {row.name}.head | head -n 1 > /dev/null\n"
    done = run(["bash", "-c", program], timeout=120)
    assert done.returncode == 0, done
    for row in OTHERS:
        assert (place / f"{row.name}.status").read_text() == "0\n", row.name
        for way in ("closed", "head"):
            found = (place / f"{row.name}.{way}").read_text().splitlines()
            # What a command says next to its results begins with its name.
            assert [line for line in found if not line.startswith(f"mxrt {row.name}: ")] == [], (row.name, way)


@pytest.mark.parametrize("name", ["bench", "tune", "demo"])
def test_ctrl_c_ends_a_command_that_runs_long(mx, place: Path, tmp_path: Path, name: str) -> None:
    words = {
        "bench": "digits_cnn --shape 1,1,8,8 --seconds 600",
        "tune": "digits_cnn --shape 1,1,8,8 --seconds 600 --table t.txt",
        "demo": "",
    }[name]
    program = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from mxrt.cli import _main; start = _main._run; "
        "_main._run = lambda *rest: (print('begun', flush=True), start(*rest))[1]; "
        "sys.exit(_main.main(sys.argv[1:]))"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program, name, *words.split()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path if name == "demo" else place,
    )
    try:
        assert child.stdout.readline() == "begun\n"
        child.send_signal(signal.SIGINT)
        _, errors = output_of(child, 60)
    finally:
        child.kill()
    assert child.returncode == 130, errors
    assert "Traceback" not in errors and errors.endswith("\ninterrupted\n"), errors


@pytest.mark.parametrize("name", OF_MODELS)
def test_debug_shows_where_the_error_of_any_command_was_raised(mx, capfd, tmp_path: Path, name: str) -> None:
    model = _with(params=PARAMS[:100])(tmp_path)
    done = command(capfd, name, model, *OF_MODELS[name], "--debug")
    assert done.status == 1, done
    if name not in ("inspect", "check"):  # whose answer it is
        assert re.search(r"Traceback \(most recent call last\):", done.err), done

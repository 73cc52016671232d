"""MODEL on the command line: every form that it has, and everything that it may be in its place."""

from __future__ import annotations

import ctypes
import gzip
import io
import os
import stat
import struct
import tarfile
import tempfile
import zipfile
from pathlib import Path

import pytest

from commands import command, digits_in, refused, tarred, tiny, zipped
from support import RUN_MXRT, run_python, tiny_model

SYMBOL, PARAMS, _, _ = tiny_model()


@pytest.fixture(autouse=True)
def no_folder_is_left(mx, tmp_path_factory, monkeypatch):
    """Archives are unpacked into a folder that is empty again when the command has ended."""
    place = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    yield
    assert list(place.iterdir()) == []


def shape_of(capfd, *arguments: object) -> list[int]:
    done = command(capfd, "inspect", *arguments, "--shape", "3,2,4,4", "--json")
    assert done.status == 0, done
    (output,) = done.json["outputs"]
    return output["shape"]


@pytest.mark.parametrize("form", ["tiny", "tiny-symbol.json", "tiny-0007", "tiny-0007.params", "."])
def test_a_model_is_a_prefix_an_epoch_one_of_its_files_or_its_folder(capfd, tmp_path: Path, form: str) -> None:
    tiny(tmp_path, epoch=7)
    assert shape_of(capfd, tmp_path / form) == [3, 4]


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("model.tar.gz", {"model_algo_1-symbol.json": SYMBOL, "model_algo_1-0000.params": PARAMS}),
        ("model.tar.gz", {"image-classification-symbol.json": SYMBOL, "image-classification-0010.params": PARAMS}),
        ("net.mar", {"MAR-INF/MANIFEST.json": b"{}", "mx-mod-symbol.json": SYMBOL, "mx-mod-0000.params": PARAMS}),
        ("net.zip", {"inner/symbol.json": SYMBOL, "inner/params": PARAMS, "readme.txt": b"hello"}),
        ("plain.tar", {"prediction_net-symbol.json": SYMBOL, "prediction_net-0000.params": PARAMS, "type.txt": b"x"}),
        ("named_otherwise", {"a-symbol.json": SYMBOL, "a-0000.params": PARAMS}),
    ],
)
def test_archives_are_read_as_sagemaker_and_the_model_server_pack_them(capfd, tmp_path: Path, name, files) -> None:
    pack = zipped if name.endswith((".zip", ".mar", "otherwise")) else tarred
    path = pack(tmp_path / name, files, *(["w"] if name.endswith(".tar") else []))
    assert shape_of(capfd, path) == [3, 4]


def test_an_archive_in_an_archive_is_read_as_the_linear_learner_writes_it(capfd, tmp_path: Path) -> None:
    inner = zipped(tmp_path / "inner", {"mx-mod-symbol.json": SYMBOL, "mx-mod-0000.params": PARAMS})
    path = tarred(tmp_path / "model.tar.gz", {"model_algo-1": inner.read_bytes()})
    assert shape_of(capfd, path) == [3, 4]


def test_the_highest_epoch_is_taken_unless_another_is_named(capfd, tmp_path: Path) -> None:
    prefix = tiny(tmp_path, epoch=3)
    tiny(tmp_path, epoch=12)
    for arguments, epoch in (((prefix,), 12), ((prefix, "--epoch", "3"), 3), ((tmp_path / "tiny-0003",), 3)):
        done = command(capfd, "inspect", *arguments, "--shape", "1,2,4,4", "--json")
        assert done.json["epoch"] == epoch
    refused(command(capfd, "inspect", prefix, "--epoch", "5"), 2, "tiny-0005.params", "have the numbers 3, 12")


def test_shapes_are_read_from_the_notes_of_sagemaker_and_of_the_model_server(capfd, tmp_path: Path) -> None:
    for name, text in (
        ("model-shapes.json", '[{"name": "data", "shape": [5, 2, 4, 4]}]'),
        ("signature.json", '{"inputs": [{"data_name": "data", "data_shape": [0, 2, 4, 4]}]}'),
    ):
        prefix = tiny(tmp_path / name)
        (prefix.parent / name).write_text(text)
        done = command(capfd, "inspect", prefix, "--json")
        assert done.json["inputs"][0]["shape"] == [5 if "shapes" in name else 1, 2, 4, 4]
        (prefix.parent / name).write_text('[{"name": "data", "shape": "wide"}]' if "shapes" in name else "{")
        done = command(capfd, "inspect", prefix)
        assert done.status == 1 and name.partition(".")[0] in done.out, done


# ---- what is no model ----------------------------------------------------------------------------


def test_what_is_not_there_is_said_with_what_is(capfd, tmp_path: Path) -> None:
    tiny(tmp_path)
    refused(command(capfd, "inspect", tmp_path / "tinny"), 2, "tinny-symbol.json", "there are tiny-symbol.json")
    refused(command(capfd, "inspect", tmp_path / "no" / "tiny"), 2, "there is no folder")
    refused(command(capfd, "inspect", tmp_path / "tiny", "--params", tmp_path / "x"), 2, "(--params)")


def test_a_symbol_file_that_ends_too_early_is_to_be_copied_again(capfd, tmp_path: Path) -> None:
    symbol = tmp_path / "tiny-symbol.json"
    tiny(tmp_path)
    symbol.write_bytes(SYMBOL[: len(SYMBOL) // 2])
    for words in (["inspect"], ["run", "random"], ["plan"]):
        done = command(capfd, words[0], tmp_path / "tiny", *words[1:], "--shape", "1,2,4,4")
        refused(done, 1, str(symbol), "copy or download it again")


def test_a_folder_with_no_model_or_with_two_is_not_guessed_at(capfd, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    refused(command(capfd, "inspect", empty), 2, "holds no model", "found nothing")
    (empty / "net.params").write_bytes(PARAMS)
    refused(command(capfd, "inspect", empty), 2, "parameters alone", "net.export()")
    (empty / "x-network.json").write_text("{}")
    refused(command(capfd, "inspect", empty), 2, "GluonTS")
    two = tmp_path / "two"
    tiny(two, "a")
    tiny(two, "b")
    refused(command(capfd, "inspect", two), 2, "holds 2 models (a-symbol.json, b-symbol.json)")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "git lfs pull"),
        (SYMBOL[:200], "no symbol file"),
        (b"[]", "no symbol file"),
        (b'{"nodes": [{"op": 1}]}', "no symbol file"),
        (b"\xff\xfe\x00", "not a symbol file"),
        (b"[" * 100_000, "no symbol file"),
        (PARAMS, "parameter file"),
    ],
)
def test_a_symbol_file_that_is_none_is_named(capfd, tmp_path: Path, content: bytes, words: str) -> None:
    prefix = tiny(tmp_path)
    (tmp_path / "tiny-symbol.json").write_bytes(content)
    for name in ("inspect", "check"):
        done = command(capfd, name, prefix)
        assert done.status == 1, done
        assert words in done.out + done.err and "tiny-symbol.json" in done.out + done.err, done
        assert "Traceback" not in done.err


@pytest.mark.parametrize("content", [b"", PARAMS[:100], b"version https://git-lfs.github.com/spec/v1\n", b"hello"])
def test_a_parameter_file_that_is_none_is_named(capfd, tmp_path: Path, content: bytes) -> None:
    prefix = tiny(tmp_path)
    (tmp_path / "tiny-0000.params").write_bytes(content)
    for arguments in (("inspect", prefix), ("check", prefix), ("run", prefix, "random"), ("profile", prefix)):
        done = command(capfd, *arguments)
        assert done.status == 1, done
        assert "tiny-0000.params" in done.out + done.err, done
        assert "Traceback" not in done.err


def test_a_file_that_is_no_model_is_named_with_what_it_is(capfd, tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(b"\x08\x07\x12\x07pytorch" + bytes(100))
    refused(command(capfd, "inspect", file), 1, "model.onnx", "ONNX")


def test_a_model_of_onnx_is_refused_with_what_works(capfd, tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(b"\x08\x07")
    refused(command(capfd, "inspect", tmp_path / "net.onnx"), 1, "a model of ONNX", "mxnet.contrib.onnx.import_model")


def test_the_parameters_of_another_model_are_named_whether_or_not_a_shape_is_said(mx, capfd, tmp_path: Path) -> None:
    prefix = digits_in(tmp_path)
    tiny(tmp_path / "other")
    (tmp_path / "digits_cnn-0000.params").write_bytes((tmp_path / "other" / "tiny-0000.params").read_bytes())
    for shape in ((), ("--shape", "1,1,8,8"), ("--shape", "data=1,1,8,8")):
        done = command(capfd, "plan", prefix, "--no-measure", *shape)
        refused(done, 1, "digits_cnn-0000.params' lacks 47 parameters", "Is it the file of another model?")
        assert len(done.err) < 700, "it names some of them"


def test_a_model_without_parameters_runs_nothing(capfd, tmp_path: Path) -> None:
    prefix = tiny(tmp_path)
    (tmp_path / "tiny-0000.params").unlink()
    refused(command(capfd, "run", prefix, "random"), 2, "tiny-0000.params")
    done = command(capfd, "inspect", prefix)
    assert done.status == 1 and "runs: no: no parameter file" in done.out


# ---- archives of strangers -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["../evil", "/tmp/evil", "a/../../evil", "..\\evil"])
@pytest.mark.parametrize("pack", [zipped, tarred])
def test_an_entry_that_leaves_the_folder_is_refused(capfd, tmp_path: Path, pack, name: str) -> None:
    path = pack(tmp_path / "m.archive", {"a-symbol.json": SYMBOL, name: b"evil"})
    refused(command(capfd, "inspect", path), 1, "name has a backslash" if "\\" in name else "leaves the folder")
    assert not list(tmp_path.rglob("*evil")) and not Path("/tmp/evil").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_a_link_or_a_device_in_a_tar_is_refused(capfd, tmp_path: Path, kind: bytes) -> None:
    path = tmp_path / "m.tar"
    with tarfile.open(path, "w") as archive:
        entry = tarfile.TarInfo("a-symbol.json")
        entry.type, entry.linkname = kind, "/etc/passwd"
        archive.addfile(entry)
    refused(command(capfd, "inspect", path), 1, "no plain file")


def test_a_link_in_a_zip_is_refused(capfd, tmp_path: Path) -> None:
    path = tmp_path / "m.zip"
    with zipfile.ZipFile(path, "w") as archive:
        entry = zipfile.ZipInfo("a-symbol.json")
        entry.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(entry, "/etc/passwd")
    refused(command(capfd, "inspect", path), 1, "no plain file")


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_an_archive_that_unpacks_to_too_much_is_refused(mx, tmp_path: Path, pack) -> None:
    from mxrt._system.temporary import remove_all
    from mxrt.cli._errors import ModelError
    from mxrt.cli._model import unpack

    path = pack(tmp_path / "bomb", {"a": bytes(3_000_000), "b": bytes(3_000_000)})
    assert path.stat().st_size < 100_000
    try:
        with pytest.raises(ModelError, match="unpacks to more than 4000000 bytes"):
            unpack(path, 4_000_000)
        assert sum(one.stat().st_size for one in unpack(path, 6_000_000).iterdir()) == 6_000_000
    finally:
        remove_all()


def test_a_full_folder_of_temporary_files_is_named_with_what_names_another(mx, tmp_path: Path) -> None:
    path = zipped(tmp_path / "m.zip", {"inner/": b"", "inner/a-symbol.json": SYMBOL + b" " * 5000})
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n{RUN_MXRT}"
    words = "; free some space there, set TMPDIR to another folder, or name an unpacked folder"
    done = run_python(limited, "inspect", str(path), env={"TMPDIR": str(tmp_path)})
    wanted = f"'{path}' cannot be unpacked into '{tmp_path}': File too large{words} [MX-MODEL]"
    assert done.returncode == 1 and wanted in done.stderr, done
    assert [one.name for one in tmp_path.iterdir()] == ["m.zip"]


def test_two_models_in_an_archive_are_named_with_what_works(capfd, tmp_path: Path) -> None:
    files = {"a-symbol.json": SYMBOL, "a-0000.params": PARAMS, "b-symbol.json": SYMBOL, "b-0000.params": PARAMS}
    words = "holds 2 models (a-symbol.json, b-symbol.json); {}name the symbol file of one of them [MX-USAGE]"
    refused(command(capfd, "inspect", zipped(tmp_path / "m.zip", files)), 2, words.format("unpack it, and "))
    (tmp_path / "m").mkdir()
    for name, content in files.items():
        (tmp_path / "m" / name).write_bytes(content)
    refused(command(capfd, "inspect", tmp_path / "m"), 2, words.format(""))


def test_an_archive_that_is_damaged_in_the_middle_of_a_file_is_named(capfd, tmp_path: Path) -> None:
    content = tarred(tmp_path / "m.tar", {"a-symbol.json": bytes(30_000)}, "w").read_bytes()
    first = bytearray(gzip.compress(content[:20_000]))
    first[-6] ^= 1  # of its checksum
    (tmp_path / "m.tar.gz").write_bytes(first + gzip.compress(content[20_000:]))
    refused(command(capfd, "inspect", tmp_path / "m.tar.gz"), 1, "m.tar.gz' is a damaged archive", "download it again")


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_an_archive_with_too_many_entries_is_refused(capfd, tmp_path: Path, pack) -> None:
    path = pack(tmp_path / "many", {f"{number}.txt": b"" for number in range(10_001)})
    refused(command(capfd, "inspect", path), 1, "more than 10000 entries")


def test_a_header_of_a_tar_that_says_that_it_is_huge_is_not_read(capfd, tmp_path: Path) -> None:
    entry = tarfile.TarInfo("pax")
    entry.type, entry.size = tarfile.XHDTYPE, 1 << 32
    path = tmp_path / "m.tar"
    path.write_bytes(entry.tobuf(tarfile.USTAR_FORMAT) + bytes(2048))
    refused(command(capfd, "inspect", path), 1, "header that is too long")


def test_an_entry_of_a_tar_whose_size_is_negative_is_refused(capfd, tmp_path: Path) -> None:
    entry = tarfile.TarInfo("a")
    block = bytearray(entry.tobuf(tarfile.GNU_FORMAT))
    block[124:136] = b"\xff" * 11 + b"\x00"  # -256
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    path = tmp_path / "m.tar"
    path.write_bytes(bytes(block) + bytes(4096))
    done = command(capfd, "inspect", path)
    assert done.status in (1, 2) and done.err.count("\n") == 1, done


def test_a_name_that_is_there_twice_is_refused(capfd, tmp_path: Path) -> None:
    path = tmp_path / "m.tar"
    with tarfile.open(path, "w") as archive:
        for _ in range(2):
            entry = tarfile.TarInfo("a-symbol.json")
            entry.size = 2
            archive.addfile(entry, io.BytesIO(b"{}"))
    refused(command(capfd, "inspect", path), 1, "'a-symbol.json' twice")


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_an_archive_that_is_cut_short_is_named(capfd, tmp_path: Path, pack) -> None:
    path = pack(tmp_path / "m", {"a-symbol.json": SYMBOL, "a-0000.params": os.urandom(10_000)})
    path.write_bytes(path.read_bytes()[:5000])
    refused(command(capfd, "inspect", path), 1, f"'{path}' is a damaged archive", "download it again")


def test_a_file_of_an_archive_is_named_after_the_archive(capfd, tmp_path: Path) -> None:
    path = tarred(tmp_path / "m.tar.gz", {"a-symbol.json": SYMBOL, "a-0000.params": PARAMS[:100]})
    words = f"'{path}/a-0000.params' is truncated"
    for name, *more in (("inspect",), ("run", "random")):
        refused(command(capfd, name, path, *more, "--shape", "3,2,4,4"), 1, words)
    done = command(capfd, "check", path, "--shape", "3,2,4,4")
    assert done.status == 1 and words in done.out, done


class Listings:
    """Counts how often a folder is opened to be listed inside of a ``with`` block."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.count = 0

    def __enter__(self) -> Listings:
        library = ctypes.CDLL(None, use_errno=True)
        self._events = library.inotify_init1(os.O_NONBLOCK)
        # Openings, and closings between them: equal events that follow each other become one.
        assert library.inotify_add_watch(self._events, os.fsencode(self._folder), 0x20 | 0x10) >= 0
        return self

    def __exit__(self, *exception: object) -> None:
        events, place = os.read(self._events, 1 << 16), 0
        os.close(self._events)
        while place < len(events):
            _, mask, _, length = struct.unpack_from("iIII", events, place)
            # Of the folder itself, not of a file in it.
            self.count += bool(mask & 0x20 and mask & 0x40000000 and not length)
            place += 16 + length


def test_a_folder_is_listed_once_for_its_model_and_once_for_its_parameters(capfd, tmp_path: Path) -> None:
    tiny(tmp_path / "model")
    with Listings(tmp_path / "model") as found:
        assert shape_of(capfd, tmp_path / "model") == [3, 4]
    assert found.count == 2
    packed = tmp_path / "packed"
    packed.mkdir()
    tarred(packed / "model.tar.gz", {"net-symbol.json": SYMBOL, "net-0000.params": PARAMS})
    with Listings(packed) as found:
        assert shape_of(capfd, packed) == [3, 4]
    assert found.count == 1

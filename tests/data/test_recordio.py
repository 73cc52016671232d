"""Files of records: ``mx.recordio``. What MXNet 1.9.1 wrote is given by its SHA-256."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import pickle
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from support import run_python

MAGIC = b"\x0a\x23\xd7\xce"


@pytest.fixture
def records(mx) -> list[bytes]:
    header = mx.recordio.IRHeader
    return [
        b"abc",
        b"",
        MAGIC + b"x" * 5 + MAGIC,
        mx.recordio.pack(header(0, 4.0, 7, 0), b"xy"),
        mx.recordio.pack(header(3, [1, 2, 3], 7, 1), b"xy"),
        b"q" * 300 + MAGIC * 2,
    ]


@pytest.fixture
def indexed(mx, tmp_path: Path, records: list[bytes]) -> tuple[str, str]:
    """Names of index and file, with keys 0, 10, 20, ..."""
    paths = str(tmp_path / "r.idx"), str(tmp_path / "r.rec")
    with mx.recordio.MXIndexedRecordIO(*paths, "w") as writer:
        for i, record in enumerate(records):
            writer.write_idx(10 * i, record)
    return paths


def test_files_are_those_that_mxnet_writes(indexed) -> None:
    index, file = indexed
    digest = "084b17279201f373c1d5098ad79c642fe7e425850cdd9c0a47a4d1bf3f5867b7"
    assert hashlib.sha256(Path(file).read_bytes()).hexdigest() == digest
    assert Path(index).read_text() == "0\t0\n10\t12\n20\t20\n30\t48\n40\t84\n50\t132\n"


def test_records_are_read_in_order_and_by_key(mx, indexed, records) -> None:
    index, file = indexed
    reader = mx.recordio.MXRecordIO(file, "r")
    assert [reader.read() for _ in range(7)] == [*records, None]
    reader.reset()
    assert reader.read() == records[0]
    assert reader.tell() == 12
    by_key = mx.recordio.MXIndexedRecordIO(index, file, "r")
    assert by_key.keys == [0, 10, 20, 30, 40, 50]
    assert [by_key.read_idx(key) for key in (50, 0, 20)] == [records[5], records[0], records[2]]
    assert by_key.read() == records[3], "reading goes on behind the record of the key"
    by_key.seek(40)
    assert by_key.read() == records[4]
    with pytest.raises(KeyError, match="no record with the key 7"):
        by_key.read_idx(7)


def test_headers_come_back(mx, records) -> None:
    header, content = mx.recordio.unpack(records[3])
    assert header == (0, 4.0, 7, 0) and content == b"xy"
    header, content = mx.recordio.unpack(records[4])
    assert header.label.tolist() == [1, 2, 3] and header.label.dtype == np.float32
    assert (header.flag, header.id, header.id2, content) == (3, 7, 1, b"xy")
    with pytest.raises(mx.MXNetError, match="24 bytes; this one has 3"):
        mx.recordio.unpack(b"abc")
    with pytest.raises(mx.MXNetError, match="at least 36 bytes, not 34"):
        mx.recordio.unpack(records[4][:-4])


def test_threads_share_a_reader(mx, indexed, records) -> None:
    reader = mx.recordio.MXIndexedRecordIO(*indexed, "r")
    keys = [10 * (i % 6) for i in range(3000)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(reader.read_idx, keys)) == [records[key // 10] for key in keys]
    in_order = mx.recordio.MXRecordIO(indexed[1], "r")
    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(lambda _: in_order.read(), range(6))) == sorted(records)


def test_forked_processes_have_positions_of_their_own(mx, indexed, records) -> None:
    reader = mx.recordio.MXIndexedRecordIO(*indexed, "r")
    assert reader.read() == records[0]
    context = multiprocessing.get_context("fork")
    found = context.Queue()

    def read() -> None:
        found.put([reader.read(), reader.read_idx(20), reader.read()])

    children = [context.Process(target=read) for _ in range(2)]
    for child in children:
        child.start()
    assert [found.get(timeout=60) for _ in children] == [[records[1], records[2], records[3]]] * 2
    for child in children:
        child.join()
    assert reader.read() == records[1]


def test_a_forked_process_writes_nothing_of_its_parent(mx, tmp_path: Path) -> None:
    path = tmp_path / "w.rec"
    writer = mx.recordio.MXIndexedRecordIO(str(tmp_path / "w.idx"), str(path), "w")
    writer.write_idx(0, b"abcd")
    child = os.fork()
    if child == 0:
        try:
            writer.write(b"no")
        except RuntimeError:
            writer.close()
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    writer.write_idx(1, b"efgh")
    writer.close()
    reader = mx.recordio.MXRecordIO(str(path), "r")
    assert [reader.read() for _ in range(3)] == [b"abcd", b"efgh", None]
    assert (tmp_path / "w.idx").read_text() == "0\t0\n1\t12\n"


def test_readers_that_are_pickled_begin_again(mx, indexed, records) -> None:
    reader = mx.recordio.MXIndexedRecordIO(*indexed, "r")
    reader.read()
    copy = pickle.loads(pickle.dumps(reader))
    assert copy.read() == records[0] and copy.read_idx(50) == records[5]
    assert reader.read() == records[1]
    reader.close()
    assert not pickle.loads(pickle.dumps(reader)).is_open
    writer = mx.recordio.MXRecordIO(indexed[1] + "2", "w")
    with pytest.raises(mx.MXNetError, match="close it before it is pickled"):
        pickle.dumps(writer)


def test_damage_is_said_with_file_and_position(mx, indexed, tmp_path: Path, records) -> None:
    content = Path(indexed[1]).read_bytes()
    path = tmp_path / "cut.rec"
    path.write_bytes(content[:60])
    reader = mx.recordio.MXRecordIO(str(path), "r")
    assert [reader.read() for _ in range(3)] == records[:3]
    for _ in range(2):
        with pytest.raises(mx.base.MXNetDataError, match=r"cut.rec: record at byte 48: the file is truncated"):
            reader.read()
    path.write_bytes(content[:12] + b"what is this")
    reader.reset()
    reader.read()
    with pytest.raises(mx.base.MXNetDataError, match=r"byte 12: Invalid RecordIO File"):
        reader.read()
    path.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n")
    reader.reset()
    with pytest.raises(mx.base.MXNetDataError, match=r"byte 0: Invalid RecordIO File.*git lfs pull"):
        reader.read()
    path.write_bytes(content)
    reader.reset()
    path.write_bytes(b"")
    with pytest.raises(mx.base.MXNetDataError, match="became shorter after it was opened"):
        reader.read()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0\t0\n10 12\n", r"r.idx, line 2: found '10 12', expected a key, a tab and a position"),
        ("zero\t0\n", r"r.idx, line 1"),
        ("0\t0\n10\t1x\n", r"r.idx, line 2"),
    ],
)
def test_a_wrong_index_is_said_with_its_line(mx, indexed, text: str, message: str) -> None:
    Path(indexed[0]).write_text(text)
    with pytest.raises(mx.base.MXNetDataError, match=message):
        mx.recordio.MXIndexedRecordIO(*indexed, "r")


def test_an_index_of_another_file_is_noticed(mx, indexed) -> None:
    Path(indexed[0]).write_text("0\t4\r\n1\t456\n\n2\t99999\n")
    reader = mx.recordio.MXIndexedRecordIO(*indexed, "r")
    for key, message in ((0, "record at byte 4: Invalid RecordIO"), (1, "at the end of"), (2, "only 456 bytes")):
        with pytest.raises(mx.base.MXNetDataError, match=message):
            reader.read_idx(key)


def test_files_that_cannot_be_opened(mx, tmp_path: Path, indexed) -> None:
    for flag in "rw":
        with pytest.raises(mx.MXNetError, match="nowhere"):
            mx.recordio.MXRecordIO(str(tmp_path / "nowhere" / "x.rec"), flag)
    with pytest.raises(mx.MXNetError, match="Is a directory"):
        mx.recordio.MXRecordIO(str(tmp_path), "r")
    with pytest.raises(ValueError, match="Invalid flag a"):
        mx.recordio.MXRecordIO(indexed[1], "a")
    os.remove(indexed[0])
    with pytest.raises(mx.MXNetError, match=r"the index of .*r.rec' cannot be read"):
        mx.recordio.MXIndexedRecordIO(*indexed, "r")


def test_wrong_uses(mx, indexed, tmp_path: Path) -> None:
    reader = mx.recordio.MXRecordIO(indexed[1], "r")
    with pytest.raises(AssertionError, match="open for reading"):
        reader.write(b"x")
    reader.close()
    reader.close()
    with pytest.raises(mx.MXNetError, match="is closed"):
        reader.read()
    writer = mx.recordio.MXRecordIO(str(tmp_path / "w.rec"), "w")
    with pytest.raises(AssertionError, match="open for writing"):
        writer.read()
    writer.write(b"abc")
    writer.reset()
    writer.write(b"x")
    writer.close()
    assert mx.recordio.MXRecordIO(str(tmp_path / "w.rec"), "r").read() == b"x"


def test_a_full_disk_is_reported(mx) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full")
    writer = mx.recordio.MXRecordIO("/dev/full", "w")
    writer.write(b"abc")
    with pytest.raises(mx.MXNetError, match="writing '/dev/full' failed: No space left"):
        writer.close()


def test_files_over_four_gigabytes(mx, tmp_path: Path) -> None:
    path = tmp_path / "large.rec"
    with mx.recordio.MXRecordIO(str(path), "w") as writer:
        writer.write(b"first")
    record = path.read_bytes()
    far = 5 << 30
    with open(path, "r+b") as file:  # a hole, which takes no room
        file.seek(far)
        file.write(record)
    (tmp_path / "large.idx").write_text(f"0\t0\n1\t{far}\n")
    reader = mx.recordio.MXIndexedRecordIO(str(tmp_path / "large.idx"), str(path), "r")
    assert reader.read_idx(1) == b"first" and reader.tell() == far + len(record)


def test_a_missing_index_is_a_missing_file(mx, indexed, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"the index of '.*' cannot be read: Open .*none\.idx"):
        mx.recordio.MXIndexedRecordIO(str(tmp_path / "none.idx"), indexed[1], "r")


def test_a_program_may_end_without_closing(mx, tmp_path: Path) -> None:
    code = """
        import sys
        import mxrt as mx
        w = mx.recordio.MXIndexedRecordIO(sys.argv[1] + ".idx", sys.argv[1] + ".rec", "w")
        w.write_idx(0, b"abcd")
    """
    assert run_python(code, tmp_path / "x").returncode == 0
    assert mx.recordio.MXIndexedRecordIO(f"{tmp_path}/x.idx", f"{tmp_path}/x.rec", "r").read_idx(0) == b"abcd"


def png(colour: int, depth: int, channels: int, rows: list[bytes]) -> bytes:
    """A PNG of one row of pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    width = len(rows[0]) * 8 // depth // channels
    head = struct.pack(">IIBBBBB", width, len(rows), depth, colour, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\x00" + row for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def test_an_image_keeps_its_channels_unless_others_are_asked_for(mx) -> None:
    recordio = mx.recordio
    header = recordio.IRHeader(0, 1.0, 0, 0)
    grey = np.arange(96, dtype=np.uint8).reshape(8, 12)
    for kind in (".png", ".jpg"):
        record = recordio.pack_img(header, grey, 9, kind)
        assert recordio.unpack_img(record)[1].shape == (8, 12), kind
        assert recordio.unpack_img(record, 1)[1].shape == (8, 12, 3), kind
        colour = recordio.pack_img(header, np.stack([grey] * 3, axis=2), 9, kind)
        assert recordio.unpack_img(colour)[1].shape == (8, 12, 3), kind
        assert recordio.unpack_img(colour, 0)[1].shape == (8, 12), kind
    with_alpha = recordio.pack(header, png(6, 8, 4, [bytes([1, 2, 3, 4, 5, 6, 7, 8])]))
    assert recordio.unpack_img(with_alpha)[1].tolist() == [[[3, 2, 1], [7, 6, 5]]]


def test_numbers_of_other_types_are_packed_as_bytes(mx) -> None:
    recordio = mx.recordio
    header = recordio.IRHeader(0, 1.0, 0, 0)
    values = [[3.5, 300, -4, 2.5, 4.5]]
    for dtype in ("float16", "float32", "float64"):
        _, back = recordio.unpack_img(recordio.pack_img(header, np.array(values, dtype), 3, ".png"))
        assert back.dtype == np.uint8 and back.tolist() == [[4, 255, 0, 2, 4]], dtype
    for dtype in ("int8", "int16", "int32"):
        _, back = recordio.unpack_img(recordio.pack_img(header, np.array([[7, -4, 99]], dtype), 3, ".png"))
        assert back.tolist() == [[7, 0, 99]], dtype
    with pytest.raises(TypeError, match="uint16; expected"):
        recordio.pack_img(header, np.zeros((2, 2), "uint16"), 3, ".png")

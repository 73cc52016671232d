"""Failures of reading data: the error that a user sees in each case, reader by reader.

``CASES`` says for each kind of failure which tests provoke it; the tests of this file are those
that are the same for all readers, or that belong to none of the other files.
"""

from __future__ import annotations

import json
import os
import re
import textwrap
import threading
import time
from pathlib import Path

import pytest

from support import ROOT, run_python
from test_io import Counting, numbers_of

# Failure -> tests, as "file: name".
CASES = {
    "missing file": ["tests/data/test_data_failures.py: test_a_file_that_is_not_there_is_named"],
    "permission": ["tests/data/test_data_failures.py: test_a_file_that_may_not_be_read_is_named"],
    "directory": ["tests/data/test_data_failures.py: test_a_folder_in_place_of_a_file_is_named"],
    "truncated record": [
        "tests/data/test_recordio.py: test_damage_is_said_with_file_and_position",
        "tests/data/test_record_iter.py: test_files_that_cannot_be_are_named_with_place_and_reason",
        "tests/data/test_record_iter.py: test_digits_in_files_that_cannot_be_are_refused",
    ],
    "bad magic": [
        "tests/data/test_recordio.py: test_damage_is_said_with_file_and_position",
        "tests/data/test_record_iter.py: test_files_that_cannot_be_are_named_with_place_and_reason",
    ],
    "wrong index": [
        "tests/data/test_recordio.py: test_a_wrong_index_is_said_with_its_line",
        "tests/data/test_recordio.py: test_an_index_of_another_file_is_noticed",
        "tests/data/test_record_iter.py: test_files_that_cannot_be_are_named_with_place_and_reason",
    ],
    "corrupt JPEG": [
        "tests/data/test_image.py: test_files_that_are_damaged_are_errors",
        "tests/data/test_record_iter.py: test_a_damaged_image_is_raised_behind_the_batches_before_it",
        "tests/data/test_image.py: test_a_broken_image_is_named_and_the_others_are_read",
    ],
    "wrong label width": [
        "tests/data/test_record_iter.py: test_files_that_cannot_be_are_named_with_place_and_reason",
        "tests/data/test_data_failures.py: test_labels_of_another_width_are_said_with_their_line",
    ],
    "ragged CSV": ["tests/data/test_io.py: test_csviter_names_the_row_that_is_wrong"],
    "text": [
        "tests/data/test_io.py: test_csviter_names_the_row_that_is_wrong",
        "tests/data/test_record_iter.py: test_rows_that_are_not_libsvm_are_named",
    ],
    "empty lines": [
        "crates/io/tests/files/csv.rs: line_endings_blank_lines_spaces_and_a_byte_order_mark_do_not_matter",
        "tests/data/test_record_iter.py: test_rows_that_are_not_libsvm_are_named",
    ],
    "CRLF": [
        "crates/io/tests/files/csv.rs: line_endings_blank_lines_spaces_and_a_byte_order_mark_do_not_matter",
        "tests/data/test_record_iter.py: test_parts_of_lines_are_all_lines",
    ],
    "no final newline": [
        "tests/data/test_record_iter.py: test_parts_of_lines_are_all_lines",
        "tests/data/test_record_iter.py: test_rows_that_are_not_libsvm_are_named",
    ],
    "a row of a million columns": ["tests/data/test_record_iter.py: test_a_row_of_a_million_columns"],
    "unordered or negative LibSVM indices": ["tests/data/test_record_iter.py: test_rows_that_are_not_libsvm_are_named"],
    "a user iterator that raises at the n-th item": [
        "tests/data/test_io.py: test_a_failure_ahead_comes_in_its_place",
        "tests/data/test_data_failures.py: test_a_failure_of_the_data_ends_a_loop_of_a_module",
    ],
    "a user iterator that raises in reset": ["tests/data/test_io.py: test_a_failure_ahead_comes_in_its_place"],
    "a dataset that raises in a process worker": [
        "tests/data/test_gluon_data.py: test_a_failure_comes_from_the_next_that_would_have_returned_the_batch",
        "tests/data/test_gluon_data.py: test_exceptions_that_cannot_be_pickled_come_as_text",
    ],
    "a worker process that is killed": [
        "tests/data/test_gluon_data.py: test_a_worker_process_that_dies_fails_its_batch_alone"
    ],
    "disk full when writing": [
        "tests/data/test_recordio.py: test_a_full_disk_is_reported",
        "tests/data/test_im2rec.py: test_a_full_disk_is_an_error",
        "tests/data/test_data_failures.py: test_a_full_disk_is_reported_for_an_index_too",
    ],
    "file changed while read": [
        "tests/data/test_record_iter.py: test_a_file_that_shrinks_while_it_is_read_is_an_error",
        "tests/data/test_data_failures.py: test_lines_that_change_while_they_are_read_are_an_error",
    ],
    "a consumer that stops early": [
        "tests/data/test_record_iter.py: test_nothing_is_left_of_iterators_that_were_read_partly",
        "tests/data/test_gluon_data.py: test_loaders_leave_nothing_behind",
        "tests/data/test_data_failures.py: test_no_thread_is_left_of_batches_that_nobody_takes",
    ],
    "Ctrl-C": [
        "tests/data/test_record_iter.py: test_a_wait_for_a_batch_can_be_interrupted",
        "tests/data/test_gluon_data.py: test_ctrl_c_ends_the_wait_for_a_batch",
        "tests/data/test_data_failures.py: test_a_wait_for_batches_made_ahead_can_be_interrupted",
    ],
    "fork with a live iterator": [
        "crates/io/tests/fork.rs: a_forked_process_is_told_and_can_begin_a_new_epoch",
        "tests/data/test_record_iter.py: test_programs_end_with_a_live_iterator_and_forks_begin_anew",
        "tests/data/test_gluon_data.py: test_a_forked_process_makes_an_iterator_of_its_own",
        "tests/data/test_io.py: test_prefetching_starts_anew_in_a_fork",
    ],
    "exit with a live iterator": [
        "tests/data/test_record_iter.py: test_programs_end_with_a_live_iterator_and_forks_begin_anew",
        "tests/data/test_gluon_data.py: test_exit_with_live_iterators",
        "tests/data/test_data_failures.py: test_a_program_ends_while_batches_are_made_ahead",
    ],
}

# Every way to open files for reading, with `path` in place of the file's name.
READERS = {
    "CSVIter": "mx.io.CSVIter(data_csv=path, data_shape=(1,), batch_size=1)",
    "CSVIter's labels": "mx.io.CSVIter(data_csv=good, data_shape=(1,), label_csv=path, batch_size=1)",
    "LibSVMIter": "mx.io.LibSVMIter(data_libsvm=path, data_shape=(1,), batch_size=1)",
    "MNISTIter": "mx.io.MNISTIter(image=path, label=path, batch_size=1)",
    "ImageRecordIter": "mx.io.ImageRecordIter(path_imgrec=path, data_shape=(3, 1, 1), batch_size=1)",
    "ImageDetRecordIter": "mx.io.ImageDetRecordIter(path_imgrec=path, data_shape=(3, 1, 1), batch_size=1)",
    "path_imglist": "mx.io.ImageRecordIter(path_imgrec=good, path_imglist=path, data_shape=(3, 1, 1), batch_size=1)",
    "ImageIter": "mx.image.ImageIter(1, (3, 1, 1), path_imgrec=path)",
    "MXRecordIO": "mx.recordio.MXRecordIO(path, 'r')",
    "MXIndexedRecordIO": "mx.recordio.MXIndexedRecordIO(path, good, 'r')",
    "RecordFileDataset": "mx.gluon.data.RecordFileDataset(path)",
    "imread": "mx.image.imread(path)",
    "nd.load": "mx.nd.load(path)",
}


def refusals(tmp_path: Path, path: Path, before: str = "") -> dict[str, str]:
    """The errors of each reader for a path, in a child that does `before` first."""
    good = tmp_path / "good.txt"
    good.write_text("0\n")
    code = f"""
    import json, sys
    import mxrt as mx

    def refusals(path, good):
        said = {{}}
        for name, text in json.loads({json.dumps(json.dumps(READERS))}).items():
            try:
                eval(text)
            except mx.base.MXNetError as error:
                said[name] = str(error)
        return said

    refusals(sys.argv[2] + ".none", sys.argv[2])  # loads all modules
    {before}
    print(json.dumps(refusals(*sys.argv[1:])))
    """
    done = run_python(code, path, good)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_case_has_a_test_that_exists() -> None:
    for case, tests in CASES.items():
        assert tests, case
        for test in tests:
            file, name = test.split(": ")
            assert re.search(rf"^(def|fn) {name}\(", (ROOT / file).read_text(), re.MULTILINE), (case, test)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    said = refusals(tmp_path, tmp_path / "nowhere.bin")
    assert said.keys() == READERS.keys()
    for name, text in said.items():
        stem = str(tmp_path / "nowhere.")
        assert stem in text and re.search(r"No such file|cannot be read|Cannot find any files", text), (name, text)


def test_a_folder_in_place_of_a_file_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    said = refusals(tmp_path, folder)
    assert said.keys() == READERS.keys()
    for name, text in said.items():
        # Files of rows may be given as folders, whose files are read; this one has none.
        assert str(folder) in text and re.search(r"[Dd]irectory|Cannot find any files", text), (name, text)


def test_a_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    closed = tmp_path / "closed.bin"
    closed.write_text("0\n")
    closed.chmod(0)
    before = ""
    if os.geteuid() == 0:  # the superuser may read every file
        for folder in [tmp_path, *tmp_path.parents[:-2]]:
            folder.chmod(folder.stat().st_mode | 0o055)
        before = "import os; os.setgroups([]); os.setgid(65534); os.setuid(65534)"
    said = refusals(tmp_path, closed, before)
    assert said.keys() == READERS.keys()
    for name, text in said.items():
        assert str(closed).removesuffix("bin") in text, (name, text)
        assert re.search("Permission denied", text), (name, text)


def test_labels_of_another_width_are_said_with_their_line(mx, tmp_path: Path) -> None:
    data, labels = tmp_path / "d.csv", tmp_path / "l.csv"
    data.write_text("1\n2\n3\n")
    labels.write_text("1,1\n2,2\n3\n")
    iterator = mx.io.CSVIter(str(data), (1,), str(labels), (2,), batch_size=1)
    assert [next(iterator).label[0].asnumpy().tolist() for _ in range(2)] == [[[1, 1]], [[2, 2]]]
    with pytest.raises(mx.base.MXNetError, match=r"l\.csv,? line 3: .*2"):
        next(iterator)
    labels.write_text("1,1\n")
    iterator = mx.io.CSVIter(str(data), (1,), str(labels), (2,), batch_size=1)
    next(iterator)
    with pytest.raises(mx.base.MXNetError, match=r"l\.csv"):
        next(iterator)


def test_a_failure_of_the_data_ends_a_loop_of_a_module(mx) -> None:
    class Rows(Counting, mx.io.DataIter):
        """Rows in the class that modules ask for."""

    net = mx.mod.Module(mx.sym.Variable("data") * 2, label_names=None)
    rows = Rows(mx, 5, fails=3)
    rows.provide_label = []
    net.bind(rows.provide_data, for_training=False)
    net.init_params()
    seen = []
    with pytest.raises(OSError, match="batch 3"):
        for outputs, _, _ in net.iter_predict(rows):
            seen.append(float(outputs[0].asscalar()))
    assert seen == [0, 2, 4]
    with pytest.raises(OSError, match="batch 3"):
        net.predict(rows)
    rows.fails = None
    assert net.predict(rows).asnumpy().tolist() == [0, 2, 4, 6, 8]


def test_a_full_disk_is_reported_for_an_index_too(mx, tmp_path: Path) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full")
    writer = mx.recordio.MXIndexedRecordIO("/dev/full", str(tmp_path / "x.rec"), "w")
    with pytest.raises((mx.MXNetError, OSError), match="No space left"):
        for i in range(10_000):
            writer.write_idx(i, b"abc")
        writer.close()


def test_lines_that_change_while_they_are_read_are_an_error(mx, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    row = "1,2,3\n"
    path.write_text(row * 2_000_000)
    iterator = mx.io.CSVIter(str(path), (3,), batch_size=1000, prefetch_buffer=1)
    assert next(iterator).data[0].asnumpy().tolist() == [[1, 2, 3]] * 1000
    os.truncate(path, 1_500_000 * len(row) + 2)  # in the middle of a row
    with pytest.raises(mx.base.MXNetError, match=r"rows\.csv"):
        for batch in iterator:
            assert (batch.data[0].asnumpy() == [1, 2, 3]).all()
    path.write_text(row * 3000)
    iterator.reset()
    assert len(list(iterator)) == 3


def prefetching_threads() -> int:
    return sum(thread.name.startswith("mxrt-data") for thread in threading.enumerate())


def test_no_thread_is_left_of_batches_that_nobody_takes(mx) -> None:
    before = prefetching_threads()
    for i in range(50):
        batches = mx.io.PrefetchingIter([Counting(mx, 3), Counting(mx, 3)])
        assert numbers_of([batches.next() for _ in range(i % 3)]) == [[k, k] for k in range(i % 3)]
    assert prefetching_threads() > before, "threads have the name that is looked for"
    del batches
    deadline = time.monotonic() + 60
    while prefetching_threads() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert prefetching_threads() <= before


# An iterator whose second batch takes long.
SLOW = """
    import os, signal, sys, threading, time
    import mxrt as mx

    gate = threading.Event()

    class Slow(mx.io.DataIter):
        batch_size, at, provide_data, provide_label = 1, 0, [("data", (1,))], []
        def next(self):
            self.at += 1
            if self.at == 2:
                gate.wait(float(sys.argv[1]))
            return mx.io.DataBatch([mx.nd.array([self.at])], [], pad=0)
        def reset(self):
            self.at = 0

    batches = mx.io.PrefetchingIter(Slow())
    print(batches.next().data[0].asscalar(), flush=True)
"""


def test_a_wait_for_batches_made_ahead_can_be_interrupted(mx) -> None:
    code = (
        SLOW
        + """
    try:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        batches.next()
    except KeyboardInterrupt:
        print("interrupted")
    gate.set()
    print(batches.next().data[0].asscalar())
    """
    )
    done = run_python(code, 600)
    assert (done.returncode, done.stdout.split()) == (0, ["1.0", "interrupted", "2.0"]), done.stderr


def test_a_program_ends_while_batches_are_made_ahead(tmp_path: Path) -> None:
    # A wait for the batch would exceed the time limit of the child.
    done = run_python(SLOW, 6000)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1.0\n", "")
    rows = tmp_path / "rows.csv"
    rows.write_text("1\n" * 1000)
    code = """
        import sys
        import mxrt as mx
        rows = mx.io.CSVIter(sys.argv[1], (1,), batch_size=1)
        lines = mx.io.LibSVMIter(sys.argv[1], (1,), batch_size=1)
        print(next(rows).data[0].asscalar(), next(lines).label[0].asscalar())
    """
    done = run_python(textwrap.dedent(code), rows)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1.0 1.0\n", "")

"""A fork while another thread imports a module of mxrt for the first time."""

from __future__ import annotations

import pytest

from support import run_python

# The thread imports until the file `inner` is to be executed, and goes on when the fork has begun.
PROGRAM = """
    import os, signal, sys, threading

    statement, inner = sys.argv[1:]
    if not statement.startswith("import mxrt;"):
        import mxrt as mx
    reached, forking = threading.Event(), threading.Event()

    def audit(event, arguments):
        if event == "exec" and arguments[0].co_filename.endswith(inner) and threading.current_thread() is importer:
            reached.set()
            forking.wait()

    def work():
        exec(statement, globals())

    if "mxnet" in statement:
        mx.install_as_mxnet()
    importer = threading.Thread(target=work)
    sys.addaudithook(audit)
    importer.start()
    reached.wait()
    # Hooks run in reverse: this one before those of mxrt.
    os.register_at_fork(before=forking.set)
    child = os.fork()
    if child == 0:
        signal.alarm(120)  # ends a child that would hang
        work()
        os._exit(7)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    importer.join()
    print(status)
"""


@pytest.mark.parametrize(
    ("statement", "inner"),
    [
        ("mx.gluon.data.DataLoader", "/data/dataset.py"),
        ("mx.gluon.data.DataLoader", "/data/__init__.py"),
        ("mx.image.imresize", "/image/detection.py"),
        ("import mxrt.contrib.text.vocab", "/text/vocab.py"),
        ("import mxnet.gluon.rnn", "/rnn/__init__.py"),
        ("mx.serve.Model", "/mxrt/serve/__init__.py"),
        # The package, and what the stand-in for MXNet and a function bring of Python's library.
        ("import mxrt; mxrt.mod.Module", "/mxrt/base.py"),
        ("import mxnet.io; mxnet.io.NDArrayIter", "/email/headerregistry.py"),
        ("mx.gluon.utils.check_sha1('/dev/null', '')", "/hashlib.py"),
    ],
)
def test_a_child_imports_what_a_thread_of_its_parent_was_importing(statement: str, inner: str) -> None:
    done = run_python(PROGRAM, statement, inner, timeout=150)
    assert done.stdout.split() == ["7"], done.stderr[-2000:]


def test_a_fork_inside_an_import_does_not_wait_for_itself() -> None:
    code = """
        import os, sys, threading

        import mxrt as mx

        def audit(event, arguments):
            global child
            if event == "exec" and arguments[0].co_filename.endswith("/image/detection.py") and child is None:
                child = 0
                child = os.fork()

        child = None
        sys.addaudithook(audit)
        mx.image.imresize
        if child == 0:
            os._exit(7)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    done = run_python(code, timeout=150)
    assert done.stdout.split() == ["7"], done.stderr[-2000:]

"""Extensions in C and C++ that are built against the installed package."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest

from support import DIGITS, run_python

C = r"""
#include <mxrt.h>

/* Draws numbers by the operator of the library, which the program calls by its name. */
int draw(int seed, float *out) {
    OpHandle op;
    int number = 0;
    NDArrayHandle *made = NULL;
    const char *keys[] = {"shape"}, *vals[] = {"(4,)"};
    if (MXRandomSeed(seed) || NNGetOpHandle("_random_uniform", &op)) return -1;
    if (MXImperativeInvoke(op, 0, NULL, &number, &made, 1, keys, vals)) return -1;
    return MXNDArraySyncCopyToCPU(made[0], out, 4) || MXNDArrayFree(made[0]);
}

const char *error(void) { return MXGetLastError(); }
"""

CPP = r"""
#include <Python.h>
#include <mxrt.hpp>

static PyObject *answer(PyObject *, PyObject *arguments) {
    const char *symbol, *params;
    Py_buffer image;
    if (!PyArg_ParseTuple(arguments, "ssy*", &symbol, &params, &image)) return nullptr;
    PyObject *scores = nullptr;
    try {
        auto net = mxrt::SymbolBlock::imports(symbol, {"data"}, params);
        auto view = net(mxrt::Array(static_cast<const float *>(image.buf), {1, 1, 8, 8})).view<float>();
        scores = PyBytes_FromStringAndSize(reinterpret_cast<const char *>(view.data()), view.size() * sizeof(float));
    } catch (const std::exception &error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    }
    PyBuffer_Release(&image);
    return scores;
}

static PyMethodDef functions[] = {{"answer", answer, METH_VARARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "extension", nullptr, -1, functions,
                             nullptr, nullptr, nullptr, nullptr};
PyMODINIT_FUNC PyInit_extension() {
    PyObject *made = PyModule_Create(&module);
#ifdef Py_GIL_DISABLED
    if (made) PyUnstable_Module_SetGIL(made, Py_MOD_GIL_NOT_USED);
#endif
    return made;
}
"""


def build(mx, compiler: str, source: Path, to: Path, *flags: str) -> Path:
    """A shared library with the flags that docs/embedding.md names."""
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    library = mx.get_library()
    command = [compiler, "-shared", "-fPIC", "-O1", str(source), "-o", str(to), f"-I{mx.get_include()}", *flags]
    command += [f"-L{library}", "-lmxrt", f"-Wl,-rpath,{library}"]
    built = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert built.returncode == 0, built.stderr
    return to


@pytest.fixture(scope="module")
def c_library(mx, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("c")
    (folder / "draw.c").write_text(C)
    return build(mx, "cc", folder / "draw.c", folder / "libdraw.so", "-std=c99", "-Wall", "-Wextra", "-Werror")


@pytest.fixture(scope="module")
def extension(mx, tmp_path_factory) -> Path:
    headers = Path(sysconfig.get_path("include"))
    if not (headers / "Python.h").exists():
        pytest.skip("the headers of Python are not installed")
    folder = tmp_path_factory.mktemp("cpp")
    (folder / "extension.cpp").write_text(CPP)
    name = f"extension{sysconfig.get_config_var('EXT_SUFFIX')}"
    return build(mx, "c++", folder / "extension.cpp", folder / name, "-std=c++17", f"-I{headers}")


def test_a_c_library_draws_from_the_random_numbers_of_python(mx, c_library: Path) -> None:
    library = ctypes.CDLL(str(c_library))
    library.error.restype = ctypes.c_char_p
    drawn = np.zeros(4, np.float32)
    assert library.draw(7, drawn.ctypes.data_as(ctypes.c_void_p)) == 0, library.error()
    after = mx.nd.random.uniform(shape=4).asnumpy()
    mx.random.seed(7)
    assert np.array_equal(mx.nd.random.uniform(shape=4).asnumpy(), drawn)
    assert np.array_equal(mx.nd.random.uniform(shape=4).asnumpy(), after)


@pytest.mark.parametrize("first", ["library", "module"])
def test_there_is_one_engine_whichever_is_loaded_first(c_library: Path, first: str) -> None:
    code = """
        import ctypes, os, sys
        if sys.argv[2] == "module":
            import mxrt as mx
        library = ctypes.CDLL(sys.argv[1])
        drawn = (ctypes.c_float * 4)()
        assert library.draw(7, drawn) == 0
        import mxrt as mx
        try:
            mx.engine.set_type("NaiveEngine")
        except mx.MXNetError as error:
            assert "runs already" in str(error)
        else:
            raise AssertionError("this program has another engine")
        mx.random.seed(7)
        assert mx.nd.random.uniform(shape=4).asnumpy().tolist() == list(drawn)
        with open("/proc/self/maps") as maps:
            files = {line.split()[-1] for line in maps if ".so" in line}
        # By their own names: the folder may be called mxrt, too.
        modules = {file for file in files if "mxrt" in os.path.basename(file)}
        print(len(modules))
    """
    result = run_python(code, c_library, first)
    assert result.returncode == 0 and result.stdout == "1\n", result.stdout + result.stderr


def test_a_cpp_extension_answers_as_python_does(mx, extension: Path) -> None:
    files = str(DIGITS / "digits_cnn-symbol.json"), str(DIGITS / "digits_cnn-0000.params")
    image = np.linspace(0, 1, 64, dtype=np.float32).reshape(1, 1, 8, 8)
    sys.path.insert(0, str(extension.parent))
    try:
        import extension as built
    finally:
        sys.path.remove(str(extension.parent))
    net = mx.gluon.SymbolBlock.imports(files[0], ["data"], files[1])
    assert built.answer(*files, image.tobytes()) == net(mx.nd.array(image)).asnumpy().tobytes()
    with pytest.raises(RuntimeError, match=r"none\.json"):
        built.answer("none.json", files[1], image.tobytes())


def test_the_folders_are_those_of_the_package(mx) -> None:
    package = Path(mx.__file__).parent
    assert Path(mx.get_library()) == package
    assert {"mxrt.h", "mxrt.hpp", "mxrt", "mxnet", "nnvm"} <= {path.name for path in Path(mx.get_include()).iterdir()}
    assert mx.libinfo.find_include_path() == mx.get_include()

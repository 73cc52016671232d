"""Compiles the kernels of crates/cuda-kernels for GPUs, which needs no GPU.

    cuda_images.py          writes crates/cuda-kernels/images: an image for each target and a list
                            with the hash of the text, of each image, and the registers of each
                            kernel
    cuda_images.py --check  says whether the images are listed as those of the text; needs nothing
    cuda_images.py --compare
                            compiles as well, and says whether the same images come of it

Compiling needs the package nvidia-cuda-nvrtc-cu12 of the version below. It fails where a kernel
uses more registers than its budget, or spills one.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import lzma
import pathlib
import re
import sys
from concurrent.futures import ThreadPoolExecutor

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "crates/cuda-kernels"
IMAGES = FOLDER / "images"
LIST = IMAGES / "images.txt"
TARGETS = ["sm_75", "sm_80", "sm_90a", "sm_100", "sm_120", "compute_80"]
OPTIONS = ["--std=c++17", "--ptxas-options=-v", "--fmad=true"]
NVRTC = "12.9"
# Registers for each thread: 256 threads of 128 fill half of a multiprocessor. One of 7.5 has shared
# memory for a single block of the kernels with most.
BUDGET = 128
BUDGETS = {"sm_75": 160}
# Blocks of a whole multiprocessor, whose warpgroups give each other registers.
WARPGROUP_BUDGET = 168


def sources() -> dict[str, str]:
    """The files of the text that are compiled for GPUs, by name."""
    names = sorted(p.name for p in (FOLDER / "cuda").iterdir())
    return {name: (FOLDER / "cuda" / name).read_text() for name in names}


def text_hash() -> str:
    """The hash of the text and of what it is compiled with."""
    parts = [f"{name}\n{text}" for name, text in sources().items()]
    return hashlib.sha256("\0".join([*parts, *OPTIONS, NVRTC]).encode()).hexdigest()


class Compiler:
    """NVRTC from its package."""

    def __init__(self) -> None:
        spec = importlib.util.find_spec("nvidia")
        folders = list(spec.submodule_search_locations or []) if spec else []
        found = [p for f in folders for p in pathlib.Path(f).glob("cuda_nvrtc/lib/libnvrtc.so.12")]
        if not found:
            sys.exit("no NVRTC: pip install nvidia-cuda-nvrtc-cu12")
        self.library = ctypes.CDLL(str(found[0]))
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        if f"{major.value}.{minor.value}" != NVRTC:
            sys.exit(f"NVRTC is {major.value}.{minor.value}, but images are made by {NVRTC}")

    def compile(self, target: str) -> tuple[bytes, str]:
        """Image and log for a target."""
        files = sources()
        main = files.pop("kernels.cu")
        program = ctypes.c_void_p()

        def array(values: list[str]) -> ctypes.Array[ctypes.c_char_p]:
            return (ctypes.c_char_p * len(values))(*[v.encode() for v in values])

        names, texts = array(list(files)), array(list(files.values()))
        self.library.nvrtcCreateProgram(ctypes.byref(program), main.encode(), b"kernels.cu", len(files), texts, names)
        options = [f"--gpu-architecture={target}", *OPTIONS]
        code = self.library.nvrtcCompileProgram(program, len(options), array(options))
        log = self.text(program, "ProgramLog").rstrip(b"\0").decode()
        if code:
            sys.exit(f"{target}: NVRTC error {code}\n{log}")
        return self.text(program, "CUBIN" if target.startswith("sm_") else "PTX"), log

    def text(self, program: ctypes.c_void_p, what: str) -> bytes:
        """A result of a program."""
        size = ctypes.c_size_t()
        if getattr(self.library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)):
            return b""
        buffer = ctypes.create_string_buffer(size.value)
        getattr(self.library, f"nvrtcGet{what}")(program, buffer)
        return buffer.raw


def registers(target: str, log: str) -> list[str]:
    """A line for each kernel, from the assembler's log."""
    pattern = r"Compiling entry function '(\w+)'.*?(\d+) bytes spill stores.*?Used (\d+) registers"
    lines = []
    for name, spilled, used in re.findall(pattern, log, re.DOTALL):
        line = f"{target} {name} {used} registers, {spilled} bytes spilled"
        budget = WARPGROUP_BUDGET if name.startswith("warpgroup_") else BUDGETS.get(target, BUDGET)
        if int(spilled) or int(used) > budget:
            sys.exit(f"{line}: at most {budget} registers, and nothing spilled")
        lines.append(line)
    return lines


def recorded() -> dict[str, str]:
    """First word and the rest of the lines of the list."""
    lines = LIST.read_text().splitlines() if LIST.exists() else []
    return dict(line.split(" ", 1) for line in lines if "registers" not in line)


def check() -> None:
    """Fails if an image is stale, absent or not the one that was listed."""
    known = recorded()
    if known.get("text") != text_hash():
        sys.exit("the images are stale: run python scripts/cuda_images.py")
    for target in TARGETS:
        image = IMAGES / f"{target}.image.lzma"
        if not image.exists() or hashlib.sha256(image.read_bytes()).hexdigest() != known.get(target):
            sys.exit(f"{image} is not the listed one: run python scripts/cuda_images.py")


def compile_all() -> list[tuple[str, bytes, str]]:
    """Target, image and log."""
    compiler = Compiler()
    with ThreadPoolExecutor() as pool:
        compiled = list(pool.map(compiler.compile, TARGETS))
    return [(target, image, log) for target, (image, log) in zip(TARGETS, compiled, strict=True)]


def compare() -> None:
    """Fails if an image is not what the compiler makes of the text."""
    check()
    for target, image, log in compile_all():
        registers(target, log)
        path = IMAGES / f"{target}.image.lzma"
        if lzma.decompress(path.read_bytes()) != image:
            sys.exit(f"{path} is not what NVRTC {NVRTC} makes of the text: run python scripts/cuda_images.py")
    print(len(TARGETS), "images are what NVRTC", NVRTC, "makes of the text")


def write() -> None:
    """Compiles for all targets."""
    IMAGES.mkdir(exist_ok=True)
    lines, details = [f"text {text_hash()}"], []
    for target, image, log in compile_all():
        packed = lzma.compress(image, lzma.FORMAT_ALONE, preset=9 | lzma.PRESET_EXTREME)
        (IMAGES / f"{target}.image.lzma").write_bytes(packed)
        lines.append(f"{target} {hashlib.sha256(packed).hexdigest()}")
        details += registers(target, log)
        print(target, len(image), "bytes,", len(packed), "compressed")
    LIST.write_text("\n".join([*lines, *details]) + "\n")


if __name__ == "__main__":
    {"--check": check, "--compare": compare}.get(" ".join(sys.argv[1:]), write)()

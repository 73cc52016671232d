#!/usr/bin/env python3
"""Look inside a built wheel: what it needs from the system, what it exports, what it carries and
weighs.

    python scripts/check_wheel.py dist/mxrt-*.whl

Needs readelf and nm (binutils). Prints one line per finding; exit status 1 when something is not as
promised.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

# The system libraries a process has anyway. Before glibc 2.34 libc was in several pieces.
ALLOWED = re.compile(r"(libc|libm|libgcc_s|ld-linux-[\w-]+)\.so(\.\d+)*")
ALLOWED_OLD = re.compile(r"(libpthread|libdl)\.so(\.\d+)*")
LIMIT_BYTES = 16_000_000
MXNET_EXPORTS = Path(__file__).parent.parent / "crates/capi/tests/recorded/libmxnet_exports.txt"
#: The package, and the program that shows its help without importing it.
PACKAGES = ("mxrt/", "mxrt_command/")
MUST_CARRY = (
    r"mxrt_command/__init__\.py",
    r"mxrt/__init__\.py",
    r"mxrt/__main__\.py",
    r"mxrt/py\.typed",
    r"mxrt/.+\.pyi",
    r"mxrt/_mxrt\.(abi3|abi3t-[\w-]+|cpython-3\d+t-[\w-]+)\.so",
    r"mxrt/libmxrt\.a",
    r"mxrt/include/mxrt\.h",
    r"mxrt/include/mxrt\.hpp",
    r"mxrt/include/mxnet/c_predict_api\.h",
    r"mxrt/demo/data/digits_cnn-0000\.params",
    r"mxrt/demo/data/README\.md",
    r"mxrt-[^/]+\.dist-info/entry_points\.txt",
    r"mxrt-[^/]+\.dist-info/licenses/LICENSE",
    r"mxrt-[^/]+\.dist-info/sboms/[^/]+\.cyclonedx\.json",
    r"mxrt-[^/]+\.dist-info/licenses/LICENSE-THIRD-PARTY",
)


def tool(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def kind(name: str) -> tuple[str, str, str]:
    """Tells what a wheel is for, how the name of its module ends, and what Python calls of it."""
    if "-cp310-abi3-" in name:
        return "the stable interface of Python 3.10", "abi3.", "PyInit__mxrt"
    if "-cp315-abi3.abi3t-" in name:
        return "the stable interface of Python 3.15, with its lock and without", "abi3t-", "PyModExport__mxrt"
    if lockless := re.search(r"-cp3(\d+)-cp3\1t-", name):
        return f"Python 3.{lockless[1]} without its lock", f"cpython-3{lockless[1]}t-", "PyInit__mxrt"
    return "", "", ""


def findings(wheel: Path) -> list[tuple[bool, str]]:
    """(as promised?, what was seen) for each promise."""
    found = []
    size = wheel.stat().st_size
    found.append((size <= LIMIT_BYTES, f"{size / 1e6:.1f} MB, at most {LIMIT_BYTES / 1e6:.0f}"))
    for_what, suffix, begins = kind(wheel.name)
    found.append((bool(for_what), f"tag of {wheel.name} is for {for_what or 'no Python of the release'}"))
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        names = archive.namelist()
        missing = [p for p in MUST_CARRY if not any(re.fullmatch(p, n) for n in names)]
        found.append(
            (not missing, f"carries what it should, {len(names)} files" if not missing else f"lacks {missing}")
        )
        stray = [n for n in names if not n.startswith(PACKAGES) and ".dist-info/" not in n]
        found.append((not stray, f"nothing beside the packages {stray or ''}".rstrip()))
        libraries = [n for n in names if re.search(r"\.so(\.|$)", n)]
        one = len(libraries) == 1 and libraries[0].startswith(f"mxrt/_mxrt.{suffix}")
        found.append((one, f"one shared library: {', '.join(libraries)}"))
        named = re.findall(r"INPUT\((.+)\)", archive.read("mxrt/libmxrt.a").decode())
        found.append(([f"mxrt/{n}" for n in named] == libraries, f"is for linkers: {', '.join(named)}"))
        for name in libraries:
            path = archive.extract(name, folder)
            needed = re.findall(r"\(NEEDED\).*\[(.+)\]", tool("readelf", "-d", path))
            old = "manylinux2014" in wheel.name
            good = all(ALLOWED.fullmatch(n) or (old and ALLOWED_OLD.fullmatch(n)) for n in needed)
            found.append((good, f"needs {', '.join(needed)}"))
            soname = re.findall(r"\(SONAME\).*\[(.+)\]", tool("readelf", "-d", path))
            found.append((soname == [Path(name).name], f"is found by extensions as {', '.join(soname)}"))
            exported = {line.split()[-1] for line in tool("nm", "-D", "--defined-only", path).splitlines()}
            functions = {e for e in exported if re.match("MX|NN", e)}
            lacking = sorted(set(MXNET_EXPORTS.read_text().split()) - functions)
            found.append(
                (not lacking, f"exports {len(functions)} functions of the C interface {lacking or ''}".rstrip())
            )
            other = sorted(exported - functions)
            found.append((other == [begins], f"exports beside them {', '.join(other[:5])}"))
            versions = re.findall(r"GLIBC_(\d+)\.(\d+)", tool("readelf", "-V", path))
            newest = max(((int(a), int(b)) for a, b in versions), default=(0, 0))
            found.append((True, "newest glibc symbol {}.{}".format(*newest)))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path)
    found = findings(parser.parse_args().wheel)
    for good, text in found:
        print(f"{'ok  ' if good else 'FAIL'} {text}")
    return 0 if all(good for good, _ in found) else 1


if __name__ == "__main__":
    sys.exit(main())

"""Limits of the machine code of GPU kernels: scripts/cuda_code.py.

`recorded/convolution_64_f32.sass` has the main loop and a part of the end of that kernel, as
nvdisasm lists them for compute capability 8.0.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys

import pytest

from support import RECORDED, ROOT

SPEC = importlib.util.spec_from_file_location("cuda_code", ROOT / "scripts" / "cuda_code.py")
assert SPEC is not None and SPEC.loader is not None
cuda_code = importlib.util.module_from_spec(SPEC)
sys.modules["cuda_code"] = cuda_code  # dataclasses look their module up
SPEC.loader.exec_module(cuda_code)

LISTING = (RECORDED / "convolution_64_f32.sass").read_text()
KERNEL = "convolution_64_f32"


def numbers(listing: str, registers: int = 126) -> dict[str, int]:
    return cuda_code.measured(cuda_code.kernels(listing.splitlines())[KERNEL], "FFMA", registers)


def limits() -> dict[str, int]:
    return {column: cuda_code.MEASURES[column].limit(number) for column, number in numbers(LISTING).items()}


def test_what_is_counted_in_a_recorded_listing() -> None:
    assert numbers(LISTING) == {
        "share": 842,  # 64 of the 76 instructions between label and branch
        "products": 64,
        "load16": len(re.findall(r"LDG\.\S*128", LISTING)),
        "store16": len(re.findall(r"STG\.\S*128", LISTING)),
        "load2": 0,
        "store2": 0,
        "loads": LISTING.count(" LDG."),
        "stores": LISTING.count(" STG."),
        "local": 0,
        "all": LISTING.count(";"),
        "registers": 126,
    }
    assert cuda_code.worse(KERNEL, numbers(LISTING), limits()) == []


def replaced(pattern: str, by: str, count: int = 0) -> str:
    made, found = re.subn(pattern, by, LISTING, count=count)
    assert found, pattern
    return made


@pytest.mark.parametrize(
    ("listing", "said"),
    [
        (replaced(" FFMA ", " IMAD ", 8), {"share", "products"}),
        # As many products, and more of other work between them.
        (replaced("(/.*/ FFMA .*;)", r"\1\n/*0000*/ MOV R0, R0 ;", 9), {"share", "all"}),
        (replaced(r"STG\.E\.128", "STG.E.U16"), {"store16", "store2"}),
        (replaced("(/.*/ STG.*;)", r"/*0000*/ LDG.E.U16 R0, [R2.64] ;\n\1", 1), {"load2", "loads"}),
        (replaced("(/.*/ FFMA .*;)", r"\1\n/*0000*/ @P0 STL [R1+0x4], R0 ;", 1), {"local"}),
    ],
    ids=["fewer products", "a longer loop", "narrow stores", "narrow loads", "spilled"],
)
def test_worse_code_is_named(listing: str, said: set[str]) -> None:
    found = cuda_code.worse(f"sm_80 {KERNEL}", numbers(listing), limits())
    assert {line.split(maxsplit=3)[3].rsplit(", at ", 1)[0] for line in found} == {
        cuda_code.MEASURES[column].text for column in said
    }
    assert all(line.startswith(f"sm_80 {KERNEL}: ") and line.endswith(" expected") for line in found)


def test_registers_are_counted_by_eights() -> None:
    assert cuda_code.worse(KERNEL, numbers(LISTING, 128), limits()) == []
    assert cuda_code.worse(KERNEL, numbers(LISTING, 129), limits()) == [
        f"{KERNEL}: 129 registers, at most 128 expected"
    ]


def test_the_table_has_the_kernels_of_the_images() -> None:
    there = {(target, name) for target in cuda_code.TARGETS for name in cuda_code.held(target)}
    assert len(there) > 70
    assert there == set(cuda_code.table(cuda_code.TABLE.read_text()))


def test_no_kernel_of_the_table_may_use_local_memory() -> None:
    rows = cuda_code.table(cuda_code.TABLE.read_text())
    assert {row["local"] for row in rows.values()} == {0}


def test_a_kernel_that_is_not_in_the_table_is_named() -> None:
    rows = cuda_code.table(cuda_code.TABLE.read_text())
    seen: dict[str, dict[str, dict[str, int]]] = {}
    for (target, kernel), row in rows.items():
        seen.setdefault(target, {})[kernel] = row
    assert cuda_code.check(seen) == []
    seen["sm_80"]["new_kernel"] = seen["sm_80"].pop(KERNEL)
    assert cuda_code.check(seen) == [f"sm_80 {KERNEL} is only in the table", "sm_80 new_kernel is only in the image"]


def test_without_the_disassembler_the_script_says_what_to_install() -> None:
    done = subprocess.run(
        [sys.executable, "-I", str(ROOT / "scripts" / "cuda_code.py")], capture_output=True, text=True, timeout=60
    )
    if done.returncode == 0:
        pytest.skip("nvdisasm is installed here")
    assert "pip install -r requirements/cuda-code.txt" in done.stderr

"""Machine code of the GPU kernels against limits, which needs no GPU.

    cuda_code.py            disassembles images of crates/cuda-kernels/images, and fails where a
                            kernel is worse than scripts/cuda_code.txt allows
    cuda_code.py --write    writes that table from the images, with a margin

Disassembling needs the package nvidia-cuda-nvdisasm, and four seconds of a core for each target.
`MEASURES` says what is counted. Where a kernel is worse on purpose, --write makes a new table, and
its diff says what has become worse.
"""

from __future__ import annotations

import importlib.util
import lzma
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "crates" / "cuda-kernels" / "images"
TABLE = Path(__file__).with_suffix(".txt")
# One with tensor cores of warps, and the one that has those of warpgroups, too.
TARGETS = ["sm_80", "sm_90a"]
# Kernels whose code is held: patterns of names, and what multiplies in the main loop.
FAMILIES = {
    r"(convolution|(deep|wide)_product)_\d+_f32": "FFMA",
    r"(convolution|(deep|wide)_product)_\d+_f16": "HMMA",
    r"warpgroup_\w+": "HGMMA",
    r"(convolution|convolution_last|product)_(f16|bf16)|deconvolution_f16": "HMMA",
    r"(convolution|convolution_last|product)_f32|deconvolution_f32": "FFMA",
    r"(short_)?(softmax|layer_norm)_(\d+_)?f(16|32)": "",
    r"pooling_(pieces|shared)_f(16|32)|turn_tiles|sum_parts": "",
}
INSTRUCTION = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(?:@!?\w+\s+)?([A-Z][\w.]*)([^;]*);")
LABEL = re.compile(r"^(\.L_x_\d+):")
KERNEL = re.compile(r"^\.text\.(\w+):")


@dataclass
class Code:
    """Instructions of a kernel with their operands, and the places of its labels."""

    names: list[str] = field(default_factory=list)
    operands: list[str] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)

    def count(self, *begins: str, has: str = "", among: range | None = None) -> int:
        """Instructions whose name begins so, and has a modifier."""
        places = among if among is not None else range(len(self.names))
        return sum(self.names[at].split(".")[0] in begins and has in f"{self.names[at]}." for at in places)

    def loops(self) -> list[range]:
        """Instructions that branches backwards repeat."""
        found = []
        for at, (name, operands) in enumerate(zip(self.names, self.operands, strict=True)):
            target = re.search(r"\.L_x_\d+", operands)
            begin = self.labels.get(target[0], at + 1) if name.startswith("BRA") and target else at + 1
            # A branch to itself stands at the end of a kernel.
            if begin < at:
                found.append(range(begin, at + 1))
        return found

    def main_loop(self, product: str) -> range:
        """The smallest loop with most products, among those that use shared memory: a function that
        is applied to results may have more products, but of registers alone.
        """
        shared = "LDS", "LDSM", "HGMMA"
        loops = [loop for loop in self.loops() if self.count(*shared, among=loop)]
        return max(loops, key=lambda loop: (self.count(product, among=loop), -len(loop)), default=range(0))


def kernels(listing: Iterable[str]) -> dict[str, Code]:
    """The kernels of a listing of nvdisasm."""
    found: dict[str, Code] = {}
    code = Code()
    for line in listing:
        if kernel := KERNEL.match(line):
            code = found[kernel[1]] = Code()
        elif label := LABEL.match(line):
            code.labels[label[1]] = len(code.names)
        elif instruction := INSTRUCTION.search(line):
            code.names.append(instruction[2])
            code.operands.append(instruction[3])
    return found


def product_of(kernel: str) -> str | None:
    """The instruction of a kernel's main loop, nothing for one without products; None for a kernel
    that is not held.
    """
    found = [product for pattern, product in FAMILIES.items() if re.fullmatch(pattern, kernel)]
    return found[0] if found else None


@dataclass(frozen=True)
class Measure:
    """A number of a kernel, and how far it may be from the one measured. Less of it is worse, or
    more.
    """

    text: str
    less_is_worse: bool
    margin: float = 0

    def limit(self, seen: int) -> int:
        if self.text == "registers":  # they are given to threads by eights
            return -(-seen // 8) * 8
        away = int(seen * self.margin)
        return seen - away if self.less_is_worse else seen + away

    def broken(self, seen: int, limit: int) -> bool:
        return seen < limit if self.less_is_worse else seen > limit


# Columns of the table.
MEASURES = {
    "share": Measure("products among 1,000 instructions of the main loop", True, 0.05),
    "products": Measure("products in the main loop", True),
    "load16": Measure("loads and copies of 16 bytes", True),
    "store16": Measure("stores of 16 bytes", True),
    "load2": Measure("loads of 2 bytes", False),
    "store2": Measure("stores of 2 bytes", False),
    "loads": Measure("loads to registers", False),
    "stores": Measure("stores", False),
    "local": Measure("accesses to local memory", False),
    "all": Measure("instructions", False, 0.05),
    "registers": Measure("registers", False),
}


def measured(code: Code, product: str, registers: int) -> dict[str, int]:
    """The numbers of a kernel, by column."""
    loop = code.main_loop(product) if product else range(0)
    products = code.count(product, among=loop) if product else 0
    return {
        "share": round(1000 * products / max(len(loop), 1)),
        "products": products,
        "load16": code.count("LDG", "LDGSTS", has=".128."),
        "store16": code.count("STG", has=".128."),
        "load2": code.count("LDG", has=".U16."),
        "store2": code.count("STG", has=".U16."),
        "loads": code.count("LDG"),
        "stores": code.count("STG"),
        "local": code.count("LDL", "STL"),
        "all": len(code.names),
        "registers": registers,
    }


def worse(where: str, seen: dict[str, int], limits: dict[str, int]) -> list[str]:
    """The numbers of a kernel that are worse than its limits, in words."""
    said = []
    for column, limit in limits.items():
        measure = MEASURES[column]
        if measure.broken(seen[column], limit):
            bound = "at least" if measure.less_is_worse else "at most"
            said.append(f"{where}: {seen[column]} {measure.text}, {bound} {limit} expected")
    return said


def registers_of(target: str) -> dict[str, int]:
    """Registers of the kernels of an image, which cuda_images.py lists."""
    text = (IMAGES / "images.txt").read_text()
    return {name: int(used) for name, used in re.findall(rf"^{target} (\w+) (\d+) registers", text, re.MULTILINE)}


def held(target: str) -> list[str]:
    """Kernels of an image whose code is held."""
    return [name for name in sorted(registers_of(target)) if product_of(name) is not None]


def table(text: str) -> dict[tuple[str, str], dict[str, int]]:
    """Limits by target and kernel."""
    rows = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    found = {}
    for target, kernel, *numbers in rows:
        found[target, kernel] = dict(zip(MEASURES, map(int, numbers), strict=True))
    return found


def disassembler() -> Path:
    """nvdisasm from its package."""
    spec = importlib.util.find_spec("nvidia")
    folders = list(spec.submodule_search_locations or []) if spec else []
    found = [path for folder in folders for path in Path(folder).glob("*/bin/nvdisasm")]
    if not found:
        sys.exit("no nvdisasm: pip install -r requirements/cuda-code.txt")
    return found[0]


def disassembled(target: str) -> dict[str, dict[str, int]]:
    """The numbers of the kernels of an image."""
    registers = registers_of(target)
    with tempfile.NamedTemporaryFile(suffix=".cubin") as image:
        image.write(lzma.decompress((IMAGES / f"{target}.image.lzma").read_bytes()))
        image.flush()
        command = [str(disassembler()), "-c", image.name]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{target}: nvdisasm ended with {done.returncode}: {done.stderr[-500:]}")
    codes = kernels(done.stdout.splitlines())
    lacking = [name for name in held(target) if name not in codes]
    if lacking:
        sys.exit(f"{target}: the listing has no {', '.join(lacking)}; has nvdisasm another format?")
    return {name: measured(codes[name], product_of(name) or "", registers[name]) for name in held(target)}


def write(seen: dict[str, dict[str, dict[str, int]]]) -> None:
    """Writes the table."""
    words = ["least" if measure.less_is_worse else "most" for measure in MEASURES.values()]
    lines = [["# target", "kernel", *MEASURES], ["#", "", *words]]
    for target, kernels in seen.items():
        for name, numbers in kernels.items():
            lines.append([target, name, *(str(MEASURES[key].limit(number)) for key, number in numbers.items())])
    ends = "".join(f"{{:>{len(column) + 2}}}" for column in MEASURES)
    rows = [f"{{:9}}{{:26}}{ends}".format(*line) for line in lines]
    TABLE.write_text("# Limits of scripts/cuda_code.py, which writes this file and says what a column counts.\n")
    with TABLE.open("a") as file:
        file.write("\n".join(rows) + "\n")


def check(seen: dict[str, dict[str, dict[str, int]]]) -> list[str]:
    """The kernels that are worse than the table allows, or not in it, in words."""
    limits = table(TABLE.read_text())
    there = {(target, name): numbers for target, kernels in seen.items() for name, numbers in kernels.items()}
    said = [
        f"{' '.join(key)} is only in {which}"
        for key in sorted(limits.keys() ^ there.keys())
        for which in ["the table" if key in limits else "the image"]
    ]
    for key in sorted(limits.keys() & there.keys()):
        said += worse(" ".join(key), there[key], limits[key])
    return said


def main() -> int:
    with ThreadPoolExecutor() as pool:
        seen = dict(zip(TARGETS, pool.map(disassembled, TARGETS), strict=True))
    if sys.argv[1:] == ["--write"]:
        write(seen)
        return 0
    said = check(seen)
    count = sum(map(len, seen.values()))
    print("\n".join([*said, f"{count} kernels were looked at, {len(said)} limits are broken"]))
    if said:
        print("if that is meant: python scripts/cuda_code.py --write, and say why in the change")
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Keep the test data in tests/ in step with the folder it comes from.

    python scripts/sync_tests.py [FOLDER]           copy what differs (default ../shared) python
    scripts/sync_tests.py [FOLDER] --check   only say what differs; exit status 1 if anything does

FOLDER holds `conformance/` (recorded MXNet results and their runner) and `models/`
(trained and full-size models with recorded outputs, `check.py`, `make_zoo.py`).
They are copied byte for byte into tests/conformance and tests/models, and the files
that the demo needs into python/mxrt/demo/data.  Files that live only in the
repository (OWN below) are left alone.
"""

import argparse
import filecmp
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Written here, not copied.
OWN = {Path("tests/conformance/known_differences.txt")}

FOLDERS = {"conformance": Path("tests/conformance"), "models": Path("tests/models")}

DEMO = Path("python/mxrt/demo/data")
DEMO_FILES = {
    Path("models/digits_cnn/digits_cnn-symbol.json"): DEMO / "digits_cnn-symbol.json",
    Path("models/digits_cnn/digits_cnn-0000.params"): DEMO / "digits_cnn-0000.params",
    Path("models/digits_cnn/eval.npz"): DEMO / "digits_cnn-eval.npz",
    Path("models/digits_cnn/meta.json"): DEMO / "digits_cnn-meta.json",
    Path("models/zoo/resnet18_v1/symbol.json"): DEMO / "resnet18_v1-symbol.json",
    Path("models/zoo/resnet18_v1/shapes.json"): DEMO / "resnet18_v1-shapes.json",
    Path("models/zoo/resnet18_v1/calib.npz"): DEMO / "resnet18_v1-calib.npz",
    Path("models/zoo/resnet18_v1/golden.npz"): DEMO / "resnet18_v1-golden.npz",
}


def wanted(source: Path) -> dict[Path, Path]:
    """Target (relative to the repository) -> source file."""
    pairs: dict[Path, Path] = {}
    for name, target in FOLDERS.items():
        if not (source / name).is_dir():
            sys.exit(f"{source / name} is not a folder; give the folder that holds {' and '.join(FOLDERS)}")
        for path in sorted((source / name).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                pairs[target / path.relative_to(source / name)] = path
    pairs.update({target: source / path for path, target in DEMO_FILES.items()})
    return pairs


def present() -> set[Path]:
    """Files in the copied folders, relative to the repository."""
    return {
        path.relative_to(ROOT)
        for target in FOLDERS.values()
        for path in (ROOT / target).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--check", action="store_true", help="change nothing; status 1 if something is out of step")
    args = parser.parse_args()
    pairs = wanted(args.folder.resolve())
    changes = []
    for target, path in sorted(pairs.items()):
        here = ROOT / target
        if here.is_file() and filecmp.cmp(here, path, shallow=False):
            continue
        changes.append(f"{'differs' if here.exists() else 'missing'}  {target}")
        if not args.check:
            here.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, here)
    for target in sorted(present() - set(pairs) - OWN):
        changes.append(f"extra    {target}")
        if not args.check:
            (ROOT / target).unlink()
    print("\n".join(changes) if changes else f"{len(pairs)} files, all in step")
    if changes:
        print(f"{len(changes)} of {len(pairs)} files {'out of step' if args.check else 'brought in step'}")
    return 1 if changes and args.check else 0


if __name__ == "__main__":
    sys.exit(main())

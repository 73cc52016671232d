"""Parameter files of blocks go from MXNet 1.9.1 to mxrt and back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import block_files
from test_blocks_recorded import check

ANSWERS = json.loads((block_files.FOLDER / "answers.json").read_text())


@pytest.mark.parametrize("name", block_files.BLOCKS)
def test_files_of_mxnet_load_and_are_written_alike(mx, name: str, tmp_path: Path) -> None:
    """Files of mxrt have the same bytes, so that MXNet loads them."""
    by_attribute = (block_files.FOLDER / f"{name}.params").read_bytes()
    by_name = (block_files.FOLDER / f"{name}-names.params").read_bytes()
    block, x = block_files.made(mx, name, values=False)
    block.load_parameters(str(block_files.FOLDER / f"{name}.params"), ctx=mx.cpu())
    if x is not None:
        check(block_files.plain(block(x)), ANSWERS[name])
    other, _ = block_files.made(mx, name, values=False)
    other.collect_params().load(str(block_files.FOLDER / f"{name}-names.params"))
    for one in (block, other):
        one.save_parameters(str(tmp_path / "attributes"))
        one.collect_params().save(str(tmp_path / "names"))
        assert (tmp_path / "attributes").read_bytes() == by_attribute
        assert (tmp_path / "names").read_bytes() == by_name


def test_shared_parameters_are_written_once_where_asked_for(mx, tmp_path: Path) -> None:
    block, x = block_files.made(mx, "shared", values=True)
    block.save_parameters(str(tmp_path / "once"), deduplicate=True)
    assert list(mx.nd.load(str(tmp_path / "once"))) == ["1.weight", "1.bias"]
    again, _ = block_files.made(mx, "shared", values=False)
    again.load_parameters(str(tmp_path / "once"))
    check(block_files.plain(again(x)), ANSWERS["shared"])

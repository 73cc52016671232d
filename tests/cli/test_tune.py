"""`mxrt tune`, and tables of measured convolutions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from support import DIGITS, block_of, last_json, mxrt, run_python

MODEL = (str(DIGITS / "digits_cnn"), "--shape", "1,1,8,8")

ANSWER = """
    import hashlib, json, sys
    import numpy as np
    import mxrt as mx
    base = sys.argv[1]
    net = mx.gluon.SymbolBlock.imports(f"{base}-symbol.json", ["data"], f"{base}-0000.params")
    x = mx.nd.array(np.random.RandomState(1).rand(1, 1, 8, 8))
    y = net(x).asnumpy()
    print(json.dumps({"plan": net.plan(x), "bits": hashlib.sha256(y.tobytes()).hexdigest(), "answer": y.tolist()}))
"""


def answer(table: Path | None, **settings: str) -> dict:
    """The answers of a separate process for the model with a table and settings."""
    env = {"MXRT_TUNED": str(table), **settings} if table else settings
    return last_json(run_python(ANSWER, DIGITS / "digits_cnn", env=env))


def table_with(mx, tmp_path: Path, method: str) -> Path:
    """A table that has this method for every 3x3 convolution of stride 1."""
    found = block_of(mx).convolutions(mx.nd.zeros((1, 1, 8, 8)))
    entries = [(one, method, 1000) for one in found if "k3x3 s1x1" in one and " 1x8x8 " not in one]
    assert len(entries) >= 2, found
    file = tmp_path / "table.txt"
    file.write_text(mx._mxrt.tuned_table("", entries))
    return file


def test_a_table_is_used_and_the_plan_says_so(mx, tmp_path: Path) -> None:
    plain, tuned = answer(None), answer(table_with(mx, tmp_path, "winograd-f2"))
    assert "tuned" not in plain["plan"]
    assert tuned["plan"].count("(tuned)") == tuned["plan"].count("F(2,3)") >= 2
    np.testing.assert_allclose(tuned["answer"], plain["answer"], atol=1e-4)


def test_the_same_table_gives_the_same_bits_and_another_one_others(mx, tmp_path: Path) -> None:
    table = table_with(mx, tmp_path, "winograd-f2")
    bits = {answer(table)["bits"] for _ in range(3)}
    assert len(bits) == 1
    assert bits != {answer(None)["bits"]}, "the tables were not used"


def test_a_method_that_the_settings_forbid_is_not_taken_from_a_table(mx, tmp_path: Path) -> None:
    seen = answer(table_with(mx, tmp_path, "winograd-f2"), MXRT_CONV_WINOGRAD="0")
    assert "tuned" not in seen["plan"]
    assert seen["bits"] == answer(None, MXRT_CONV_WINOGRAD="0")["bits"]


def test_tune_saves_a_table_that_is_used(mx, tmp_path: Path) -> None:
    table = tmp_path / "own.txt"
    result = mxrt("tune", *MODEL, "--table", str(table), "--seconds", "0.01")
    assert result.returncode == 0, result.stderr
    assert f"MXRT_TUNED={table}" in result.stderr
    found = block_of(mx).convolutions(mx.nd.zeros((1, 1, 8, 8)))
    lines = [line for line in table.read_text().splitlines() if not line.startswith("#")]
    assert sorted(line.rsplit(" ", 2)[0] for line in lines) == sorted(found)
    seen = answer(table)
    assert seen["plan"].count("(tuned)") >= len(found)
    np.testing.assert_allclose(seen["answer"], answer(None)["answer"], atol=1e-4)


def test_tune_keeps_what_the_table_holds_of_other_models(mx, tmp_path: Path) -> None:
    other = "portable small single n1 3x9x9 8 k3x3 s1x1 d1x1 p1x1 g1"
    table = tmp_path / "own.txt"
    table.write_text(f"# of another model\n{other} direct 77\n")
    result = mxrt("tune", *MODEL, "--table", str(table), "--seconds", "0.01")
    assert result.returncode == 0, result.stderr
    assert f"{other} direct 77\n" in table.read_text()


@pytest.mark.parametrize("text", ["garbage\n", "# head\navx2 large single n1 3x9x9 8 k3 s1x1 d1x1 p1x1 g1 direct 5\n"])
def test_a_damaged_table_is_an_error_with_its_line_and_stays_as_it_is(mx, tmp_path: Path, text: str) -> None:
    table = tmp_path / "damaged.txt"
    table.write_text(text)
    line = f"line {len(text.splitlines())}"
    result = mxrt("tune", *MODEL, "--table", str(table), "--seconds", "0.01")
    assert (result.returncode, table.read_text()) == (2, text)
    assert line in result.stderr
    assert str(table) in result.stderr
    used = run_python(ANSWER, DIGITS / "digits_cnn", env={"MXRT_TUNED": str(table)})
    assert used.returncode == 1
    last = used.stderr.strip().splitlines()[-1]
    assert "MXRT_TUNED" in last
    assert line in last


def test_a_table_that_is_not_there_is_an_error(mx, tmp_path: Path) -> None:
    used = run_python(ANSWER, DIGITS / "digits_cnn", env={"MXRT_TUNED": str(tmp_path / "none.txt")})
    assert used.returncode == 1
    assert "none.txt" in used.stderr.strip().splitlines()[-1]


def test_tune_says_what_is_wrong_with_its_arguments(mx) -> None:
    for arguments, status, expected in [
        (("no/such/model",), 2, "there is no file"),
        ((*MODEL, "--seconds", "0"), 2, "--seconds is 0"),
        ((*MODEL, "--table", "/no/such/folder/t.txt"), 2, "there is no folder"),
        ((MODEL[0], "--shape", "1,3,8,8"), 1, "digitsnet_conv0_fwd"),
    ]:
        result = mxrt("tune", *arguments)
        assert result.returncode == status
        assert expected in result.stderr, result.stderr
        assert "Traceback" not in result.stderr

"""Commands on a predictor that GluonTS serialised, with the forecasts of MXNet 1.9.1."""

from __future__ import annotations

import numpy as np

from commands import command
from support import RECORDED

FOLDER = RECORDED / "gluonts"


def test_a_folder_of_gluonts_is_inspected_and_gives_the_forecasts_of_mxnet(mx, capfd, tmp_path) -> None:
    shapes = ("--shape", "data0=4,14", "--shape", "data1=4,14")
    done = command(capfd, "inspect", FOLDER / "nbeats", *shapes)
    assert done.status == 0, done
    assert "prediction_net-symbol.json" in done.out and done.out.rstrip().splitlines()[-1].startswith("runs: yes")
    done = command(capfd, "check", FOLDER / "nbeats", "--golden", FOLDER / "nbeats-golden.npz", "--atol", "1e-5")
    assert done.status == 0, done
    with np.load(FOLDER / "nbeats-golden.npz") as saved:
        np.savez(tmp_path / "series.npz", data0=saved["in.data0"], data1=saved["in.data1"])
        wanted = saved["out.0"]
    made = tmp_path / "forecasts.npz"
    assert command(capfd, "run", FOLDER / "nbeats", tmp_path / "series.npz", "-o", made).status == 0
    with np.load(made) as found:
        (name,) = (name for name in found.files if name != "inputs")
        np.testing.assert_allclose(found[name], wanted, rtol=1e-5, atol=1e-5)

"""mxrt with a simulated device in the place of the CPU, as a module for conformance/run.py."""

import sys

import mxrt

mxrt.sim(0).__enter__()
mxrt.cpu = lambda device_id=0: mxrt.sim(device_id)  # type: ignore[attr-defined]
sys.modules[__name__] = mxrt

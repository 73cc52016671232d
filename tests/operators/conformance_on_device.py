"""mxrt with a device in the place of the CPU, as a module for conformance/run.py: a simulated one,
or the kind that MXRT_TEST_DEVICES names, of the number that MXRT_TEST_DEVICE names.
"""

import os
import sys

import mxrt

KIND = os.environ.get("MXRT_TEST_DEVICES", "sim")
NUMBER = int(os.environ.get("MXRT_TEST_DEVICE", "0"))
mxrt.Context(KIND, NUMBER).__enter__()
mxrt.cpu = lambda device_id=0: mxrt.Context(KIND, device_id or NUMBER)  # type: ignore[attr-defined]
sys.modules[__name__] = mxrt

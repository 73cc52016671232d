"""mxrt with a device in the place of the CPU, as a module for conformance/run.py: a simulated one,
or what MXRT_TEST_DEVICES says.
"""

import os
import sys

import mxrt

KIND = os.environ.get("MXRT_TEST_DEVICES", "sim")
mxrt.Context(KIND, 0).__enter__()
mxrt.cpu = lambda device_id=0: mxrt.Context(KIND, device_id)  # type: ignore[attr-defined]
sys.modules[__name__] = mxrt

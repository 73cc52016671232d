"""The hooks of `mxrt serve --sagemaker-code`. The server loads this file, and it the script."""

from mxrt.serve import _script

_loaded = _script.current()
preprocess = _loaded.answer
postprocess = _loaded.response

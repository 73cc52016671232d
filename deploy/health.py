"""Asks the server of this container whether it lives: the status is 0 if it does.

It reads the variables that the server reads: MXRT_SERVE_PORT and MXRT_SERVE_TLS_CERTIFICATE.
"""

import os
import ssl
import urllib.request

port = os.environ.get("MXRT_SERVE_PORT", "8000")
secure = bool(os.environ.get("MXRT_SERVE_TLS_CERTIFICATE"))
# It speaks to itself, under a name that its certificate does not have.
context = ssl._create_unverified_context() if secure else None
url = f"{'https' if secure else 'http'}://127.0.0.1:{port}/v2/health/live"
urllib.request.urlopen(url, timeout=2, context=context)

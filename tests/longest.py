"""Files of tests that take the longest, the longest first: where tests are spread over processes,
none of these begins last.
"""

from __future__ import annotations

LONGEST = """
devices/test_cuda_kernels
devices/test_cuda
devices/test_cuda_compiled
gluon/test_models
engine/test_exits
serve/test_serve_accounting
engine/test_threads
test_quantization
devices/test_device_models
engine/test_memory
gluon/test_long_graphs
test_make
cli/test_cli
cli/test_bench
test_types
devices/test_device_sparse
cli/test_cli_contract
cli/test_cli_models
engine/test_many_callers
engine/test_requests
engine/test_exit
test_bad_input
test_pages
serve/test_serve_ends
""".split()
RANKS = {f"tests/{name}.py": rank for rank, name in enumerate(LONGEST)}


def rank(nodeid: str) -> int:
    """Place of a test's file among `LONGEST`; the files that are not there come after them."""
    return RANKS.get(nodeid.partition("::")[0], len(RANKS))

"""Files of tests that take the longest, the longest first: where tests are spread over processes,
none of these begins last.
"""

from __future__ import annotations

LONGEST = """
devices/test_cuda_kernels
devices/test_cuda_compiled
devices/test_cuda
gluon/test_models
devices/test_cuda_graphs
cli/test_cli
engine/test_promises
engine/test_exit_while_busy
serve/test_serve_accounting
cli/test_cli_contract
engine/test_requests
devices/test_cuda_libraries
cli/test_bench
precision/test_quantization
engine/test_refused_memory
devices/test_device_models
engine/test_threads
engine/test_memory
gluon/test_long_graphs
engine/test_forks
serve/test_serve_words
serve/test_serve_ends
operators/test_conformance
pages/test_pages
pages/test_recipes
structure/test_make
structure/test_types
serve/test_serve_settings
engine/test_release
cli/test_cli_models
engine/test_many_callers
devices/test_device_sparse
files/test_bad_input
""".split()
RANKS = {f"tests/{name}.py": rank for rank, name in enumerate(LONGEST)}


def rank(nodeid: str) -> int:
    """Place of a test's file among `LONGEST`; the files that are not there come after them."""
    return RANKS.get(nodeid.partition("::")[0], len(RANKS))

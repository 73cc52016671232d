"""Arrays of mxrt in a CUDA graph that PyTorch captures, on a real GPU.

Prints `done` if the capture holds PyTorch's work alone: it takes an array by DLPack and gives it
back while it captures, the graph reads the array's present value at every launch, and operators of
mxrt keep working during the capture and after it.
"""

from __future__ import annotations

import gc

import numpy as np
import torch

import mxrt as mx

COUNT = 1 << 20


def capture(x: mx.nd.NDArray) -> tuple[torch.cuda.CUDAGraph, torch.Tensor]:
    """A graph that doubles the array's value."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        taken = torch.from_dlpack(x)
        doubled = taken * 2
        del taken
        gc.collect()
        assert (x + 1).asnumpy()[0] == x.asnumpy()[0] + 1, "an operator during the capture"
    return graph, doubled


def replayed(graph: torch.cuda.CUDAGraph, result: torch.Tensor) -> list[float]:
    """Distinct values of the result of a launch."""
    graph.replay()
    torch.cuda.synchronize()
    return np.unique(result.cpu().numpy()).tolist()


def check_replays(gpu: mx.Context) -> None:
    x = mx.nd.ones((COUNT,), ctx=gpu) * 3  # under way when the capture asks for it
    graph, doubled = capture(x)
    assert replayed(graph, doubled) == [6]
    x[:] = 5
    x.wait_to_read()
    assert replayed(graph, doubled) == [10]
    assert np.unique((x + 1).asnumpy()).tolist() == [6]


def check_memory(gpu: mx.Context) -> None:
    """Memory that a capture may read is kept until the capture ends, and not for longer."""
    mx.nd.waitall()
    before = gpu.memory_info()["in_use"]
    x = mx.nd.ones((COUNT,), ctx=gpu)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        taken = torch.from_dlpack(x)
        doubled = taken * 2
        del taken, x
        gc.collect()
        assert gpu.memory_info()["in_use"] > before, "memory of a capture was released"
    mx.nd.waitall()
    assert gpu.memory_info()["in_use"] == before, "memory was kept for ever"
    del doubled


def check_other_ways(gpu: mx.Context) -> None:
    """Neither a capsule without synchronisation nor an import spoils the operators that follow."""
    x = mx.nd.ones((COUNT,), ctx=gpu)
    x.wait_to_read()
    graph = torch.cuda.CUDAGraph()
    made = torch.ones(COUNT, device="cuda")
    with torch.cuda.graph(graph):
        doubled = made * 2
        capsule = x.__dlpack__(stream=-1)
        del capsule
        gc.collect()
    assert replayed(graph, doubled) == [2]
    assert np.unique((mx.nd.from_dlpack(made) + 1).asnumpy()).tolist() == [2]
    # The stream of the import is drawn into the capture, which PyTorch may not be able to end then.
    try:
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            mx.nd.from_dlpack(made * 3)
            raise AssertionError("an array without a value was taken")
    except mx.base.MXNetDeviceError as error:
        assert "is capturing a graph" in str(error), error
    except RuntimeError as error:  # PyTorch's own, for the stream that did not come back
        print("PyTorch:", str(error).splitlines()[0])
    torch.cuda.synchronize()
    for _ in range(9):
        assert np.unique((x + 1).asnumpy()).tolist() == [2]
    assert np.unique((mx.nd.from_dlpack(made) * 4).asnumpy()).tolist() == [4]


def main() -> None:
    gpu = mx.gpu(0)
    torch.cuda.init()
    check_replays(gpu)
    check_memory(gpu)
    check_other_ways(gpu)
    print("done")


if __name__ == "__main__":
    main()

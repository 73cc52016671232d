"""Methods that NDArray and Symbol share: each calls the operator of its name with the object as
first argument.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class OperatorMethods:
    """Operators as methods; arguments are those of the function of the same name in ``mx.nd`` and
    ``mx.sym``.
    """

    __slots__ = ()

    def _function(self, name: str) -> Callable[..., Any]:
        raise NotImplementedError

    def abs(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``abs`` with this object as its first argument."""
        return self._function("abs")(self, *args, **kwargs)

    def arccos(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``arccos`` with this object as its first argument."""
        return self._function("arccos")(self, *args, **kwargs)

    def arccosh(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``arccosh`` with this object as its first argument."""
        return self._function("arccosh")(self, *args, **kwargs)

    def arcsin(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``arcsin`` with this object as its first argument."""
        return self._function("arcsin")(self, *args, **kwargs)

    def arcsinh(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``arcsinh`` with this object as its first argument."""
        return self._function("arcsinh")(self, *args, **kwargs)

    def arctan(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``arctan`` with this object as its first argument."""
        return self._function("arctan")(self, *args, **kwargs)

    def arctanh(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``arctanh`` with this object as its first argument."""
        return self._function("arctanh")(self, *args, **kwargs)

    def argmax(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``argmax`` with this object as its first argument."""
        return self._function("argmax")(self, *args, **kwargs)

    def argmax_channel(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``argmax_channel`` with this object as its first argument."""
        return self._function("argmax_channel")(self, *args, **kwargs)

    def argmin(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``argmin`` with this object as its first argument."""
        return self._function("argmin")(self, *args, **kwargs)

    def argsort(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``argsort`` with this object as its first argument."""
        return self._function("argsort")(self, *args, **kwargs)

    def broadcast_axes(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``broadcast_axes`` with this object as its first argument."""
        return self._function("broadcast_axes")(self, *args, **kwargs)

    def cbrt(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``cbrt`` with this object as its first argument."""
        return self._function("cbrt")(self, *args, **kwargs)

    def ceil(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``ceil`` with this object as its first argument."""
        return self._function("ceil")(self, *args, **kwargs)

    def clip(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``clip`` with this object as its first argument."""
        return self._function("clip")(self, *args, **kwargs)

    def cos(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``cos`` with this object as its first argument."""
        return self._function("cos")(self, *args, **kwargs)

    def cosh(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``cosh`` with this object as its first argument."""
        return self._function("cosh")(self, *args, **kwargs)

    def degrees(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``degrees`` with this object as its first argument."""
        return self._function("degrees")(self, *args, **kwargs)

    def depth_to_space(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``depth_to_space`` with this object as its first argument."""
        return self._function("depth_to_space")(self, *args, **kwargs)

    def diag(self, k: int = 0, **kwargs: Any) -> Any:
        """The operator ``diag`` with this object as its first argument."""
        return self._function("diag")(self, k, **kwargs)

    def exp(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``exp`` with this object as its first argument."""
        return self._function("exp")(self, *args, **kwargs)

    def expm1(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``expm1`` with this object as its first argument."""
        return self._function("expm1")(self, *args, **kwargs)

    def fix(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``fix`` with this object as its first argument."""
        return self._function("fix")(self, *args, **kwargs)

    def flip(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``flip`` with this object as its first argument."""
        return self._function("flip")(self, *args, **kwargs)

    def floor(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``floor`` with this object as its first argument."""
        return self._function("floor")(self, *args, **kwargs)

    def log(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``log`` with this object as its first argument."""
        return self._function("log")(self, *args, **kwargs)

    def log10(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``log10`` with this object as its first argument."""
        return self._function("log10")(self, *args, **kwargs)

    def log1p(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``log1p`` with this object as its first argument."""
        return self._function("log1p")(self, *args, **kwargs)

    def log2(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``log2`` with this object as its first argument."""
        return self._function("log2")(self, *args, **kwargs)

    def log_softmax(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``log_softmax`` with this object as its first argument."""
        return self._function("log_softmax")(self, *args, **kwargs)

    def max(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``max`` with this object as its first argument."""
        return self._function("max")(self, *args, **kwargs)

    def mean(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``mean`` with this object as its first argument."""
        return self._function("mean")(self, *args, **kwargs)

    def min(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``min`` with this object as its first argument."""
        return self._function("min")(self, *args, **kwargs)

    def nanprod(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``nanprod`` with this object as its first argument."""
        return self._function("nanprod")(self, *args, **kwargs)

    def nansum(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``nansum`` with this object as its first argument."""
        return self._function("nansum")(self, *args, **kwargs)

    def norm(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``norm`` with this object as its first argument."""
        return self._function("norm")(self, *args, **kwargs)

    def one_hot(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``one_hot`` with this object as its first argument."""
        return self._function("one_hot")(self, *args, **kwargs)

    def ones_like(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``ones_like`` with this object as its first argument."""
        return self._function("ones_like")(self, *args, **kwargs)

    def pad(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``pad`` with this object as its first argument."""
        return self._function("pad")(self, *args, **kwargs)

    def pick(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``pick`` with this object as its first argument."""
        return self._function("pick")(self, *args, **kwargs)

    def prod(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``prod`` with this object as its first argument."""
        return self._function("prod")(self, *args, **kwargs)

    def radians(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``radians`` with this object as its first argument."""
        return self._function("radians")(self, *args, **kwargs)

    def rcbrt(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``rcbrt`` with this object as its first argument."""
        return self._function("rcbrt")(self, *args, **kwargs)

    def reciprocal(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``reciprocal`` with this object as its first argument."""
        return self._function("reciprocal")(self, *args, **kwargs)

    def relu(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``relu`` with this object as its first argument."""
        return self._function("relu")(self, *args, **kwargs)

    def repeat(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``repeat`` with this object as its first argument."""
        return self._function("repeat")(self, *args, **kwargs)

    def reshape_like(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``reshape_like`` with this object as its first argument."""
        return self._function("reshape_like")(self, *args, **kwargs)

    def rint(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``rint`` with this object as its first argument."""
        return self._function("rint")(self, *args, **kwargs)

    def round(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``round`` with this object as its first argument."""
        return self._function("round")(self, *args, **kwargs)

    def rsqrt(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``rsqrt`` with this object as its first argument."""
        return self._function("rsqrt")(self, *args, **kwargs)

    def shape_array(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``shape_array`` with this object as its first argument."""
        return self._function("shape_array")(self, *args, **kwargs)

    def sigmoid(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``sigmoid`` with this object as its first argument."""
        return self._function("sigmoid")(self, *args, **kwargs)

    def sign(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``sign`` with this object as its first argument."""
        return self._function("sign")(self, *args, **kwargs)

    def sin(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``sin`` with this object as its first argument."""
        return self._function("sin")(self, *args, **kwargs)

    def sinh(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``sinh`` with this object as its first argument."""
        return self._function("sinh")(self, *args, **kwargs)

    def size_array(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``size_array`` with this object as its first argument."""
        return self._function("size_array")(self, *args, **kwargs)

    def slice(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``slice`` with this object as its first argument."""
        return self._function("slice")(self, *args, **kwargs)

    def slice_axis(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``slice_axis`` with this object as its first argument."""
        return self._function("slice_axis")(self, *args, **kwargs)

    def slice_like(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``slice_like`` with this object as its first argument."""
        return self._function("slice_like")(self, *args, **kwargs)

    def softmax(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``softmax`` with this object as its first argument."""
        return self._function("softmax")(self, *args, **kwargs)

    def softmin(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``softmin`` with this object as its first argument."""
        return self._function("softmin")(self, *args, **kwargs)

    def sort(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``sort`` with this object as its first argument."""
        return self._function("sort")(self, *args, **kwargs)

    def space_to_depth(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``space_to_depth`` with this object as its first argument."""
        return self._function("space_to_depth")(self, *args, **kwargs)

    def split(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``split`` with this object as its first argument."""
        return self._function("split")(self, *args, **kwargs)

    def split_v2(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``split_v2`` with this object as its first argument."""
        return self._function("split_v2")(self, *args, **kwargs)

    def sqrt(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``sqrt`` with this object as its first argument."""
        return self._function("sqrt")(self, *args, **kwargs)

    def square(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``square`` with this object as its first argument."""
        return self._function("square")(self, *args, **kwargs)

    def sum(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``sum`` with this object as its first argument."""
        return self._function("sum")(self, *args, **kwargs)

    def swapaxes(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``swapaxes`` with this object as its first argument."""
        return self._function("swapaxes")(self, *args, **kwargs)

    def take(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``take`` with this object as its first argument."""
        return self._function("take")(self, *args, **kwargs)

    def tan(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``tan`` with this object as its first argument."""
        return self._function("tan")(self, *args, **kwargs)

    def tanh(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``tanh`` with this object as its first argument."""
        return self._function("tanh")(self, *args, **kwargs)

    def tile(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``tile`` with this object as its first argument."""
        return self._function("tile")(self, *args, **kwargs)

    def topk(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``topk`` with this object as its first argument."""
        return self._function("topk")(self, *args, **kwargs)

    def trunc(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``trunc`` with this object as its first argument."""
        return self._function("trunc")(self, *args, **kwargs)

    def zeros_like(self, *args: Any, **kwargs: Any) -> Any:
        """The operator ``zeros_like`` with this object as its first argument."""
        return self._function("zeros_like")(self, *args, **kwargs)

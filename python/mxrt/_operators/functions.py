"""Functions ``mx.nd.X`` and ``mx.sym.X`` out of what the registry knows of operator X, each made
when first used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

from .. import _mxrt
from .._imports import load
from .._values.dtypes import operator_dtype
from ..base import _Null, no_training_attribute
from . import namespaces

__all__ = ["Binding", "Namespace", "WholeModule", "module_functions", "operator_names"]


# Attributes that MXNet's operators lack, so that they have no position.
_OWN_ATTRS = {"_linalg_potrf": ("lower",), "_linalg_potri": ("lower",)}


class Binding:
    """Sorts the arguments of a call into arrays and attributes: arrays come first, then attributes
    in order. An element type that is None is not passed by functions of NumPy's interface.
    """

    def __init__(self, operator: _mxrt.Operator, of_numpy: bool = False) -> None:
        self.operator = operator
        self.of_numpy = of_numpy
        self.inputs: list[str] = list(operator.inputs)
        self.variadic = operator.variadic
        own = _OWN_ATTRS.get(operator.name, ())
        self.attrs = [attr[0] for attr in operator.attrs if attr[0] != self.variadic and attr[0] not in own]
        # The number of arguments by position that are inputs and attributes.
        self.most: float = float("inf") if self.variadic is not None else len(self.inputs) + len(self.attrs)
        # Custom takes any attributes, as text.
        self.is_custom = operator.name == "Custom"
        self.dtype_attrs = tuple(operator.dtype_attrs)

    def by_name(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], further: tuple[str, ...]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments of a call with more of them than inputs and attributes: `further` ones follow
        in MXNet's functions.
        """
        most = int(self.most)
        rest = args[most:]
        if len(rest) > len(further):
            raise TypeError(
                f"{name}() takes at most {most + len(further)} positional arguments but {len(args)} were given"
            )
        for key, value in zip(further, rest, strict=False):
            if key in kwargs:
                raise TypeError(f"{name}() got multiple values for argument '{key}'")
            kwargs[key] = value
        return args[:most], kwargs

    def bind(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], is_input: Callable[[Any], bool], kind: str
    ) -> tuple[list[tuple[str | None, Any]], dict[str, Any]]:
        """Inputs, as (name, value), and attributes of a call."""
        if self.variadic is not None:
            inputs: list[tuple[str | None, Any]] = []
            for value in args:
                if not is_input(value):
                    raise AssertionError(f"Positional arguments must have {kind} type, but got {value}")
                inputs.append((None, value))
            named = {key: value for key, value in kwargs.items() if is_input(value)}
            inputs += named.items()
            attrs = {key: value for key, value in kwargs.items() if key not in named}
        else:
            inputs, attrs = self._bind_named(name, args, kwargs, is_input, kind)
        if self.is_custom:
            attrs = {key: str(value) for key, value in attrs.items()}
        for key in self.dtype_attrs:
            value = attrs.get(key, _Null)
            if value is None and self.of_numpy:
                del attrs[key]
            # MXNet makes a dtype of the attribute with this name alone: others may be none.
            elif value is not _Null and not (key != "dtype" and value in (None, "None")):
                attrs[key] = operator_dtype(value)
        return inputs, attrs

    def _bind_named(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], is_input: Callable[[Any], bool], kind: str
    ) -> tuple[list[tuple[str | None, Any]], dict[str, Any]]:
        count = len(self.inputs)
        given: dict[str, Any] = dict(zip(self.inputs, args, strict=False))
        attrs: dict[str, Any] = {}
        if len(args) > count:
            attrs.update(zip(self.attrs, args[count:], strict=False))
        for key, value in kwargs.items():
            if key in given or key in attrs:
                raise TypeError(f"{name}() got multiple values for argument '{key}'")
            (given if key in self.inputs else attrs)[key] = value
        inputs: list[tuple[str | None, Any]] = []
        for key in self.inputs:
            value = given.get(key)
            if value is None:
                continue
            if not is_input(value):
                raise AssertionError(f"Argument {key} must have {kind} type, but got {value}")
            inputs.append((key, value))
        return inputs, attrs


def _default(text: str | None) -> Any:
    """A default as Python shows it."""
    if text is None:
        return _REQUIRED
    if text in ("True", "False", "None"):
        return {"True": True, "False": False, "None": None}[text]
    if text == "()":
        return ()
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text


class _Required:
    """Stands where a signature has no default although one with a default comes before it."""

    def __repr__(self) -> str:
        return "<required>"


_REQUIRED = _Required()


def describe(function: Any, binding: Binding, name: str, module: str, kind: str, extra: Iterable[str]) -> None:
    """Gives a function its name, signature and documentation."""
    from inspect import Parameter, Signature

    operator = binding.operator
    parameters = []
    if binding.variadic is not None:
        parameters.append(Parameter("data", Parameter.VAR_POSITIONAL))
        attr_kind: Any = Parameter.KEYWORD_ONLY
    else:
        parameters += [Parameter(n, Parameter.POSITIONAL_OR_KEYWORD, default=None) for n in binding.inputs]
        attr_kind = Parameter.POSITIONAL_OR_KEYWORD
    taken = {*binding.inputs, *([] if binding.variadic is None else [binding.variadic])}
    shown = [attr for attr in operator.attrs if attr[0] not in taken and attr[0].isidentifier()]
    known = set(binding.attrs)
    parameters += [Parameter(a[0], attr_kind, default=_default(a[2])) for a in shown if a[0] in known]
    taken.update(attr[0] for attr in operator.attrs)
    parameters += [Parameter(n, attr_kind, default=None) for n in extra if n not in taken]
    parameters += [Parameter(a[0], Parameter.KEYWORD_ONLY, default=_default(a[2])) for a in shown if a[0] not in known]
    if binding.is_custom:
        parameters.append(Parameter("kwargs", Parameter.VAR_KEYWORD))
    function.__name__ = function.__qualname__ = name
    function.__module__ = module
    function.__signature__ = Signature(parameters)
    function.__doc__ = _document(binding, kind)


def _document(binding: Binding, kind: str) -> str:
    operator = binding.operator
    lines = [operator.doc.strip(), "", "Parameters", "----------"]
    if binding.variadic is not None:
        lines.append(f"*data : {kind}, any number")
    lines += [f"{name} : {kind}" for name in binding.inputs]
    for name, type_text, default, doc in operator.attrs:
        if name == binding.variadic:
            continue
        lines.append(f"{name} : {type_text}, {'required' if default is None else f'optional, default={default}'}")
        if doc:
            lines.append(f"    {doc}")
    lines += ["", "Returns", "-------", f"{kind} or list of {kind}"]
    return "\n".join(lines)


_NAMES: set[str] | None = None


def operator_names() -> set[str]:
    """All names and aliases of operators."""
    global _NAMES
    if _NAMES is None:
        _NAMES = set(_mxrt.operator_names())
    return _NAMES


class Namespace:
    """A namespace of operators' functions: finds, makes and keeps them."""

    def __init__(self, module: str, section: str, make: Callable[[_mxrt.Operator, str, str], Any]) -> None:
        self.module = module
        self.section = section
        self.make = make

    def find(self, name: str) -> Any:
        """The function of this name, for a module's ``__getattr__``."""
        if not name.startswith("__"):
            for candidate in namespaces.candidates(self.section, name):
                operator = _mxrt.get_operator(candidate)
                if operator is not None:
                    import sys

                    function = self.make(operator, name, self.module)
                    setattr(sys.modules[self.module], name, function)
                    return function
        if any(map(_mxrt.belongs_to_training, namespaces.candidates(self.section, name))):
            raise no_training_attribute(f"{self.module}.{name}")
        text = f"module '{self.module}' has no attribute '{name}'"
        raise AttributeError(text if name.startswith("__") else text + self._about(name))

    def _about(self, name: str) -> str:
        """Further information about a name that is missing here."""
        from difflib import get_close_matches
        from importlib import resources
        from sys import modules

        known = resources.files(__package__).joinpath("mxnet_operators.txt").read_text("ascii").split()
        if not set(known).isdisjoint(namespaces.candidates(self.section, name)):
            return f": {name} is an operator of MXNet that mxrt does not have yet"
        here = [*vars(modules[self.module]), *self.names()]
        lower = {one.lower(): one for one in here if not one.startswith("__")}
        near = get_close_matches(name.lower(), lower, 1)
        return f"; did you mean '{lower[near[0]]}'?" if near else ""

    def names(self) -> list[str]:
        """The names of all functions that can be made here."""
        return namespaces.names(self.section, operator_names())


class WholeModule(ModuleType):
    """A module of functions that are made when first used, but which are all in its ``__dict__``
    for programs that look there: ``"box_nms" in mx.nd.contrib.__dict__``.
    """

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        made: dict[str, Any] = _MODULE_DICT.__get__(self)
        if "_all_made" not in made:
            for name in made["__dir__"]():
                if name not in made:
                    made["__getattr__"](name)
            made["_all_made"] = True
        return made


_MODULE_DICT = vars(ModuleType)["__dict__"]


def module_functions(
    module: dict[str, Any],
    section: str,
    make: Callable[[_mxrt.Operator, str, str], Any],
    modules: Mapping[str, str] | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a module, given its ``globals()``, that has the operators
    of a section. `modules` are imported when their names in it are asked for.
    """
    space, later = Namespace(module["__name__"], section, make), modules or {}

    def find(name: str) -> Any:
        if name not in later:
            return space.find(name)
        found = module[name] = load(later[name])
        return found

    return find, lambda: sorted({*module, *space.names()})

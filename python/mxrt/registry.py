"""Classes by name: how ``create`` of metrics, initializers and optimizers finds them, and how
programs add theirs.
"""

from __future__ import annotations

import json
import warnings  # noqa: F401 (a name of MXNet's module)
from collections.abc import Callable
from typing import Any

from .base import MXNetError, warn

__all__ = ["NotRegisteredError", "get_alias_func", "get_create_func", "get_register_func", "get_registry"]

_REGISTRIES: dict[type, dict[str, type]] = {}


class NotRegisteredError(MXNetError, AssertionError):
    """No class is registered under the name."""

    kind = "key"


def _of(base_class: type) -> dict[str, type]:
    return _REGISTRIES.setdefault(base_class, {})


def get_registry(base_class: type) -> dict[str, type]:
    """The classes registered for `base_class`, by lower-case name, as a copy."""
    return dict(_of(base_class))


def get_register_func(base_class: type, nickname: str) -> Callable[..., Any]:
    """A function that registers subclasses of `base_class`, under their own lower-case name or a
    given one.
    """

    def register(klass: type, name: str | None = None) -> type:
        if not issubclass(klass, base_class):
            raise AssertionError(f"Can only register subclass of {base_class.__name__}, not {klass}")
        key = (name or klass.__name__).lower()
        known = _of(base_class)
        if known.get(key, klass) is not klass:
            other = known[key]
            warn(
                f"New {nickname} {klass.__module__}.{klass.__name__} registered with name {key} is overriding "
                f"existing {nickname} {other.__module__}.{other.__name__}"
            )
        known[key] = klass
        return klass

    register.__doc__ = f"Registers a class as {nickname}, so that ``create`` finds it by name."
    return register


def get_alias_func(base_class: type, nickname: str) -> Callable[..., Any]:
    """A decorator that registers subclasses of `base_class` under further names."""
    register = get_register_func(base_class, nickname)

    def alias(*aliases: str) -> Callable[[type], type]:
        def decorate(klass: type) -> type:
            for name in aliases:
                register(klass, name)
            return klass

        return decorate

    alias.__doc__ = f"Registers a class as {nickname} under the names given."
    return alias


def get_create_func(base_class: type, nickname: str) -> Callable[..., Any]:
    """A function that makes instances of registered classes.

    It takes a name with the constructor's arguments, the JSON text that ``dumps`` writes, a
    dictionary that has the name under `nickname`, or an instance, which it hands back.
    """

    def create(*args: Any, **kwargs: Any) -> Any:
        if args:
            name, args = args[0], args[1:]
        else:
            name = kwargs.pop(nickname, None)
        if isinstance(name, base_class):
            if args or kwargs:
                raise AssertionError(f"{nickname} is already an instance. Additional arguments are invalid")
            return name
        if isinstance(name, dict):
            return create(**name)
        if not isinstance(name, str):
            raise AssertionError(f"{nickname} must be of string type, got {name!r}")
        if name.startswith(("[", "{")):
            if args or kwargs:
                raise AssertionError(f"{nickname} is given as JSON. Additional arguments are invalid")
            found = json.loads(name)
            return create(**found) if isinstance(found, dict) else create(found[0], **found[1])
        known = _of(base_class)
        if name.lower() not in known:
            raise NotRegisteredError(
                f"{name} is not registered. Please register with {nickname}.register first; known: "
                + ", ".join(sorted(known))
            )
        return known[name.lower()](*args, **kwargs)

    create.__doc__ = f"Makes a {nickname} from a name, a JSON text or a dictionary; an instance is returned unchanged."
    return create

"""Values as JSON, as they are kept in znodes: readable by people, and by older and newer agents.

Unknown fields are left out and missing ones take their default, so that the agents of a cluster
may be of two versions while they are upgraded.
"""

from __future__ import annotations

import json
import types
import typing
from enum import Enum
from typing import Any, TypeVar

import attrs

from zkelect.recipes.position import Position

__all__ = ["decode", "encode"]

_Value = TypeVar("_Value")


def encode(value: object) -> bytes:
    """Return an attrs value as JSON."""
    return json.dumps(_plain(value), ensure_ascii=False).encode()


def decode(kind: type[_Value], data: bytes) -> _Value:
    """Return the value of that class.

    :raises ValueError: the data are not such a value.
    """
    try:
        built = _build(kind, json.loads(data.decode()))
    except (TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"no {kind.__name__}: {error!r}") from error
    return typing.cast("_Value", built)


def _plain(value: object) -> object:
    if isinstance(value, Position | Enum):
        return str(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    kind = type(value)
    if attrs.has(kind):
        return {field.name: _plain(getattr(value, field.name)) for field in attrs.fields(kind)}
    return value


def _build(kind: Any, found: Any) -> Any:
    origin = typing.get_origin(kind)
    if origin in (types.UnionType, typing.Union):
        return _build_optional(typing.get_args(kind), found)
    if origin is tuple:
        return tuple(_build(typing.get_args(kind)[0], item) for item in found)
    if kind is Position:
        return Position.parse(found)
    if attrs.has(kind):
        return _build_attrs(kind, found)
    if issubclass(kind, Enum):
        return kind(found)
    if type(found) is not kind:
        raise ValueError(f"{found!r} is no {kind.__name__}")
    return found


def _build_optional(kinds: tuple[Any, ...], found: Any) -> Any:
    if found is None and types.NoneType in kinds:
        return None
    return _build(next(kind for kind in kinds if kind is not types.NoneType), found)


def _build_attrs(kind: Any, found: dict[str, Any]) -> Any:
    hints = typing.get_type_hints(kind)
    given = {
        field.name: _build(hints[field.name], found[field.name])
        for field in attrs.fields(kind)
        if field.name in found
    }
    return kind(**given)

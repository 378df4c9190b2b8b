"""Parses Avro schemas to values: JSON with resolved names, without a JVM."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bridge.errors import DefinitionError

_NAMED = ("record", "error", "enum", "fixed")
_PLAIN = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_MISSING: Any = object()


@dataclass(frozen=True)
class SchemaField:
    """One field of a record; `default` is JSON, to be ignored unless `has_default`."""

    name: str
    node: Node
    has_default: bool
    default: Any
    aliases: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Node:
    """A schema, or a part of one. A record may contain itself, so recursion must follow something finite."""

    raw: Any
    namespace: str
    """The namespace that names in `raw` are relative to."""
    table: Mapping[str, tuple[Any, str]]
    """Every named type of the whole schema, by its full name."""

    @property
    def kind(self) -> str:
        """Return one of Avro's types; 'union' for a list of them."""
        if isinstance(self.raw, list):
            return "union"
        kind = self.raw["type"] if isinstance(self.raw, dict) else self.raw
        return "record" if kind == "error" else str(kind)

    @property
    def full_name(self) -> str:
        """Return the full name of a named type."""
        return _full_name(self.raw, self.namespace)

    @property
    def logical(self) -> str:
        """Return the logical type, '' where there is none."""
        return str(self.raw.get("logicalType", "")) if isinstance(self.raw, dict) else ""

    @property
    def fields(self) -> tuple[SchemaField, ...]:
        """Return the fields of a record."""
        inner = self.full_name.rpartition(".")[0]
        return tuple(
            SchemaField(
                f["name"],
                self._part(f["type"], inner),
                "default" in f,
                f.get("default"),
                tuple(f.get("aliases", ())),
            )
            for f in self.raw["fields"]
        )

    @property
    def items(self) -> Node:
        """Return the element schema of an array."""
        return self._part(self.raw["items"], self.namespace)

    @property
    def values(self) -> Node:
        """Return the value schema of a map."""
        return self._part(self.raw["values"], self.namespace)

    @property
    def branches(self) -> tuple[Node, ...]:
        """Return the branches of a union; any other schema is its only branch."""
        if self.kind != "union":
            return (self,)
        return tuple(self._part(branch, self.namespace) for branch in self.raw)

    @property
    def is_nullable(self) -> bool:
        return any(branch.kind == "null" for branch in self.branches)

    def number(self, key: str, default: int = 0) -> int:
        """Return an attribute like `precision` or `size`."""
        value = self.raw.get(key, default) if isinstance(self.raw, dict) else default
        return value if isinstance(value, int) else default

    def _part(self, raw: Any, namespace: str) -> Node:
        return _node(raw, namespace, self.table)


def parse(text: str, what: str) -> Node:
    """Return the schema in `text`. Raises DefinitionError, beginning with `what`, where it is no Avro schema."""
    try:
        raw = json.loads(text)
    except ValueError:
        # The bare name of a type is no JSON, but common.
        raw = text.strip()
    table: dict[str, tuple[Any, str]] = {}
    try:
        for definition, namespace in _named(raw, ""):
            name = _full_name(definition, namespace)
            if table.setdefault(name, (definition, namespace))[0] is not definition:
                raise DefinitionError(f"{what}: the name '{name}' is defined twice")
        node = _node(raw, "", table)
        _check(node, set())
    except (KeyError, TypeError, AttributeError, _UnknownType) as error:
        raise DefinitionError(f"{what}: it is not an Avro schema ({_reason(error)})") from None
    return node


class _UnknownType(Exception):
    pass


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, _UnknownType) else f"at or below {error}"


def _node(raw: Any, namespace: str, table: Mapping[str, tuple[Any, str]]) -> Node:
    """Return the node of `raw`: for a name its definition's, for {"type": <a schema>} the schema's."""
    if isinstance(raw, str) and raw not in _PLAIN:
        full = raw if "." in raw or not namespace else f"{namespace}.{raw}"
        definition = table.get(full, table.get(raw))
        if definition is None:
            raise _UnknownType(f"the type '{raw}' is not known")
        return Node(*definition, table)
    if isinstance(raw, dict) and not isinstance(raw.get("type"), str):
        return _node(raw["type"], namespace, table)
    if isinstance(raw, dict) and raw["type"] not in (*_PLAIN, *_NAMED, "array", "map"):
        return _node(raw["type"], namespace, table)
    return Node(raw, namespace, table)


def _full_name(raw: Mapping[str, Any], namespace: str) -> str:
    name = str(raw["name"])
    if "." in name:
        return name
    own = raw.get("namespace", namespace)
    return f"{own}.{name}" if own else name


def _named(raw: Any, namespace: str) -> Iterator[tuple[Any, str]]:
    """Yield every definition of a named type in `raw`, with its enclosing namespace."""
    if isinstance(raw, list):
        for branch in raw:
            yield from _named(branch, namespace)
    elif isinstance(raw, dict):
        inner = namespace
        if raw.get("type") in _NAMED and "name" in raw:
            yield raw, namespace
            inner = _full_name(raw, namespace).rpartition(".")[0]
        for key in ("type", "items", "values"):
            if isinstance(raw.get(key), dict | list):
                yield from _named(raw[key], inner)
        fields = raw.get("fields")
        for field in fields if isinstance(fields, list) else []:
            if isinstance(field, dict):
                yield from _named(field.get("type"), inner)


def _check(node: Node, seen: set[str]) -> None:
    """Resolve every part once, so that errors are raised here and not where a part is used."""
    if node.kind in ("record", "enum", "fixed"):
        if node.full_name in seen:
            return
        seen.add(node.full_name)
    if node.kind == "union":
        for branch in node.branches:
            _check(branch, seen)
    elif node.kind == "record":
        for field in node.fields:
            _check(field.node, seen)
    elif node.kind == "array":
        _check(node.items, seen)
    elif node.kind == "map":
        _check(node.values, seen)
    elif node.kind not in (*_PLAIN, "enum", "fixed"):
        raise _UnknownType(f"the type '{node.kind}' is not known")

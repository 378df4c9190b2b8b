"""Parses YAML and records the position of every value. Duplicate keys are errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from bridge.errors import DefinitionError
from bridge.user_files import read_text

Place = tuple[str | int, ...]
"""The path of a value from the root: keys and list indices."""


@dataclass(frozen=True)
class Document:
    """The values of a pipeline file and their YAML nodes."""

    file: str
    text: str
    values: dict[str, Any]
    nodes: Mapping[Place, yaml.Node]

    def where(self, place: Place) -> str:
        """Returns `file:line: a.b` of the value at `place` or, if it is absent, with the line of its parent."""
        known = place
        while known not in self.nodes:
            known = known[:-1]
        line = self.nodes[known].start_mark.line + 1
        return f"{self.file}:{line}: " + (".".join(map(str, place)) or "the file")

    def raw(self, place: Place) -> str | None:
        """Returns the scalar at `place` as in the file, without substitutions."""
        node = self.nodes.get(place)
        return str(node.value) if isinstance(node, yaml.ScalarNode) else None

    def mapped(self, change: Callable[[Place, str], Any]) -> dict[str, Any]:
        """Returns a copy of the values in which each string is replaced by `change(place, string)`."""

        def walk(value: Any, place: Place) -> Any:
            if isinstance(value, dict):
                return {key: walk(item, (*place, key)) for key, item in value.items()}
            if isinstance(value, list):
                return [walk(item, (*place, index)) for index, item in enumerate(value)]
            return change(place, value) if isinstance(value, str) else value

        return {key: walk(item, (key,)) for key, item in self.values.items()}


def read(file: str) -> Document:
    """Reads a YAML file, by its path or URI, whose root is a mapping.

    Raises DefinitionError with the line if the file is not legal.
    """
    try:
        text = read_text(file)
    except OSError as error:
        raise DefinitionError(f"{file}: the pipeline file cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DefinitionError(f"{file}: the pipeline file is not UTF-8 text (byte {error.start})") from None
    try:
        root = yaml.compose(text, yaml.SafeLoader)
        if not isinstance(root, yaml.MappingNode):
            raise DefinitionError(f"{file}: a pipeline file must be a mapping that starts with `version: 1`")
        nodes: dict[Place, yaml.Node] = {}
        _index(file, root, (), nodes)
        values = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        at = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark else file
        raise DefinitionError(f"{at}: not valid YAML: {error.problem}") from None
    except yaml.YAMLError as error:
        raise DefinitionError(f"{file}: not valid YAML: {type(error).__name__}") from None
    return Document(file, text, values, nodes)


def _index(file: str, node: yaml.Node, place: Place, nodes: dict[Place, yaml.Node]) -> None:
    if place in nodes:
        raise DefinitionError(
            f"{file}:{node.start_mark.line + 1}: {'.'.join(map(str, place))} is set twice "
            f"(first on line {nodes[place].start_mark.line + 1})"
        )
    nodes[place] = node
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise DefinitionError(f"{file}:{key.start_mark.line + 1}: a key must be a scalar")
            _index(file, value, (*place, key.value), nodes)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _index(file, item, (*place, index), nodes)

"""Reads the DDL of a pipeline from `topic.ddl` or `topic.ddl_file`; errors point into the file that contains it."""

from __future__ import annotations

from pathlib import Path

import yaml

from bridge.config.model import TopicSection
from bridge.config.paths import resolved_path
from bridge.config.yaml_tree import Document
from bridge.ddl import Ddl, parse
from bridge.errors import DdlError, DefinitionError

__all__ = ["read_ddl"]


def read_ddl(document: Document, topic: TopicSection, base: Path) -> Ddl:
    """Parses `topic.ddl` or `topic.ddl_file`. Raises DdlError with the position in the file that contains the DDL.

    For `ddl: |` blocks and DDL on the line of its key, this is the exact position in the pipeline file. For other YAML
    strings, whose lines are folded, it is the start of the string, and the message gives the position in the DDL.
    """
    if topic.ddl_file is not None:
        file = resolved_path(base, topic.ddl_file)
        try:
            return parse(Path(file).read_text(encoding="utf-8"), file)
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            where = document.where(("topic", "ddl_file"))
            raise DefinitionError(f"{where}: the file {file} cannot be read: {reason}") from None
    text = topic.ddl or ""
    try:
        return parse(text, document.file)
    except DdlError as error:
        raise _at_yaml_position(document, text, error) from error


def _at_yaml_position(document: Document, text: str, error: DdlError) -> DdlError:
    node = document.nodes[("topic", "ddl")]
    start = node.start_mark
    style = node.style if isinstance(node, yaml.ScalarNode) else None
    if style == "|":
        line = start.line + 1 + error.line
        indent = _indent(document.text.splitlines()[start.line + 1 :], text.splitlines())
        return DdlError(error.message, document.file, line, error.column + indent)
    if start.line == node.end_mark.line and "\\" not in document.text[start.index : node.end_mark.index]:
        quote = 1 if style in ("'", '"') else 0
        return DdlError(error.message, document.file, start.line + 1, start.column + quote + error.column)
    message = f"{error.message} (line {error.line}, column {error.column} of the DDL)"
    return DdlError(message, document.file, start.line + 1, start.column + 1)


def _indent(written: list[str], parsed: list[str]) -> int:
    """Returns the indentation that YAML removed from a block, determined from its first line that is not blank."""
    return next((len(w) - len(r) for w, r in zip(written, parsed, strict=False) if r.strip()), 0)

"""The DDL of a pipeline, wherever it stands; its errors point into the file that the author edits."""

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
    """Parse `topic.ddl` or `topic.ddl_file`. A DdlError of an inline DDL has the YAML file's own place.

    That holds for `ddl: |` blocks and for DDL on the line of its key; of other YAML strings, whose lines are
    folded, the error has the line they begin in and says the place in the DDL beside it.
    """
    if topic.ddl_file is not None:
        file = resolved_path(base, topic.ddl_file)
        try:
            return parse(Path(file).read_text(encoding="utf-8"), file)
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            where = document.where(("topic", "ddl_file"))
            raise DefinitionError(f"{where}: {file} cannot be read: {reason}") from None
    text = topic.ddl or ""
    try:
        return parse(text, document.file)
    except DdlError as error:
        raise _moved(document, text, error) from error


def _moved(document: Document, text: str, error: DdlError) -> DdlError:
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


def _indent(written: list[str], read: list[str]) -> int:
    """How many columns YAML took off a block's lines: told by the first line that is not blank."""
    return next((len(w) - len(r) for w, r in zip(written, read, strict=False) if r.strip()), 0)

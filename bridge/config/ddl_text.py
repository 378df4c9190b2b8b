"""Reads the DDL of a pipeline from `topic.ddl` or `topic.ddl_file`; errors point into the file that contains it."""

from __future__ import annotations

import yaml

from bridge.config.model import TopicSection
from bridge.config.paths import resolved_path
from bridge.config.yaml_tree import Document, Place
from bridge.ddl import Ddl, parse
from bridge.errors import DdlError, DefinitionError
from bridge.user_files import location_of, read_text


def read_ddl(document: Document, topic: TopicSection, base: str) -> Ddl:
    """Parses `topic.ddl` or `topic.ddl_file`. Raises DdlError with the position in the file that contains the DDL.

    For `ddl: |` blocks and DDL on the line of its key, this is the exact position in the pipeline file. For other YAML
    strings, whose lines are folded, it is the start of the string, and the message gives the position in the DDL.
    """
    if topic.ddl_file is not None:
        file = resolved_path(base, topic.ddl_file)
        try:
            return parse(read_text(location_of(file)), file)
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            where = document.where(("topic", "ddl_file"))
            raise DefinitionError(f"{where}: the file {file} cannot be read: {reason}") from None
    text = topic.ddl or ""
    try:
        return parse(text, document.file)
    except DdlError as error:
        raise at_yaml_position(document, ("topic", "ddl"), text, error) from error


def at_yaml_position(document: Document, place: Place, text: str, error: DdlError) -> DdlError:
    """Returns the same error at its position in the file: `error` is about `text`, the string at `place`.

    The position is exact as in `read_ddl`; for strings whose lines are folded it is the start of the string, and the
    message gives the position in the text.
    """
    node = document.nodes[place]
    start = node.start_mark
    style = node.style if isinstance(node, yaml.ScalarNode) else None
    if style == "|":
        line = start.line + 1 + error.line
        indent = _indent(document.text.splitlines()[start.line + 1 :], text.splitlines())
        return DdlError(error.message, document.file, line, error.column + indent)
    written = document.text[start.index : node.end_mark.index]
    escapes = {'"': "\\", "'": "''"}.get(style or "")
    if start.line == node.end_mark.line and (escapes is None or escapes not in written[1:-1]):
        quote = 1 if style in ("'", '"') else 0
        return DdlError(error.message, document.file, start.line + 1, start.column + quote + error.column)
    what = "DDL" if "ddl" in place else "text"
    message = f"{error.message} (line {error.line}, column {error.column} of the {what})"
    return DdlError(message, document.file, start.line + 1, start.column + 1)


def _indent(written: list[str], parsed: list[str]) -> int:
    """Returns the indentation that YAML removed from a block, determined from its first line that is not blank."""
    return next((len(w) - len(r) for w, r in zip(written, parsed, strict=False) if r.strip()), 0)

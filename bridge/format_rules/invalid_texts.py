"""Texts of a table that are no valid UTF-8, which Delta stores and no format but `raw` can carry."""

from __future__ import annotations

from bridge.definition import FormatSpec
from bridge.options import FORMATS


def carries_invalid_texts(spec: FormatSpec) -> bool:
    """Return whether documents have the bytes of a text as they are: those of one column, in UTF-8."""
    return FORMATS[spec.name].single_column and str(spec.options.get("charset", "UTF-8")).upper() in (
        "UTF-8",
        "UTF8",
    )


def invalid_text(format: str, column: str) -> str:
    """Return the error of a row that cannot be written; it names neither table nor version."""
    return (
        f"column '{column}' of a row holds a text that is not valid UTF-8, which format '{format}' cannot carry. "
        "Correct the row in the table; where it has a PRIMARY KEY, `bridge resync FILE` then sends the current rows "
        "and skips the versions that have it"
    )

"""The error of a part of an expression that has no counterpart in Spark."""

from __future__ import annotations

from sqlglot import exp

BRANCHES = "write CASE WHEN ... with a constant in each branch"
"""The way out where Spark takes a constant only."""


class Refusal(Exception):
    """Raised for a part of an expression (`node`) that is not supported; the caller adds file, line and column."""

    def __init__(self, message: str, node: exp.Expr | None = None) -> None:
        super().__init__(message)
        self.node = node

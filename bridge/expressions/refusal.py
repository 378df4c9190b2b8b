"""The error of a part of an expression that has no counterpart in Spark."""

from __future__ import annotations

from sqlglot import exp

__all__ = ["Refusal"]


class Refusal(Exception):
    """Raised for a part of an expression (`node`) that is not supported; the caller adds file, line and column."""

    def __init__(self, message: str, node: exp.Expr | None = None) -> None:
        super().__init__(message)
        self.node = node

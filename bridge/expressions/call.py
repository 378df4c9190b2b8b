"""A call of one of Flink's functions, whose arguments are adapted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from bridge.expressions.refusal import BRANCHES, Refusal
from bridge.expressions.template import literal
from bridge.schema import DataType


@dataclass(frozen=True)
class Call:
    """The name in capitals, the arguments, and their types as far as they are known."""

    name: str
    arguments: Sequence[exp.Expr]
    types: Sequence[DataType | None]

    def constant(self, n: int) -> str | None:
        """Returns the text of argument `n`, None if it is no constant or not there."""
        return literal(self.arguments[n]) if n < len(self.arguments) else None

    def number(self, n: int, what: str) -> int:
        """Returns argument `n`, a constant integer. Raises Refusal for other expressions."""
        text = self.constant(n)
        try:
            return int(text or "")
        except ValueError:
            raise Refusal(
                f"{what} of {self.name} must be a constant, as Spark takes no column there; {BRANCHES}"
            ) from None


Build = Callable[[Call], exp.Expr]
Entries = Mapping[str, "str | Mapping[int, str] | Build"]
"""By the name of the function: a text in which `@0` is the first argument, such a text for each number of arguments, or
what builds the expression."""

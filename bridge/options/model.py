"""An option as a value: one source for parsing, errors and the tables in docs/options.md."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Generic, TypeVar

from bridge.errors import OptionError
from bridge.options.kinds import Kind

__all__ = ["KAFKA", "UPSERT", "Option", "Side", "Support"]

T_co = TypeVar("T_co", covariant=True)

UPSERT = "upsert-kafka"
KAFKA = "kafka"


class Support(str, Enum):
    """What the bridge does with an option."""

    HONOURED = "honoured"
    TRANSLATED = "translated"
    REFUSED = "refused"
    NOT_YET = "not yet"


class Side(str, Enum):
    """Which direction of a pipeline an option is about: source is ingest, sink is publish."""

    BOTH = "both"
    SOURCE = "source"
    SINK = "sink"


@dataclass(frozen=True)
class Option(Generic[T_co]):
    """A key of WITH. `default` is text, as one would write it. A key that ends in `.*` declares a prefix."""

    key: str
    kind: Kind[T_co]
    description: str
    default: str | None = None
    required: bool = False
    connectors: tuple[str, ...] = (UPSERT, KAFKA)
    side: Side = Side.BOTH
    support: Support = Support.HONOURED
    reason: str = ""
    """Why it is refused, translated or not there yet, and what to do instead."""

    def __post_init__(self) -> None:
        if (self.support is Support.HONOURED) == bool(self.reason):
            raise ValueError(f"{self.key}: an option has a reason if and only if it is not honoured")
        if self.required and self.default is not None:
            raise ValueError(f"{self.key}: required and defaulted")

    def parse(self, text: str, masked: bool = False) -> T_co:
        """The typed value of `text`. Raises OptionError with the key, and without the text if `masked`."""
        try:
            return self.kind.parse(text)
        except ValueError as error:
            if masked:
                raise OptionError(f"'{self.key}': its value (not shown) must be {self.kind.legal}") from None
            raise OptionError(f"'{self.key}': {error}") from None

    def named(self, key: str) -> Option[T_co]:
        """The same option under another key: a format's prefix put before it, or a prefix spelt out."""
        return replace(self, key=key)

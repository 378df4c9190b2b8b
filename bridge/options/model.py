"""An option as a value: the single source for parsing, error messages and the tables in docs/options.md."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Generic, TypeVar

from bridge.errors import OptionError
from bridge.options.kinds import Kind

T_co = TypeVar("T_co", covariant=True)

UPSERT = "upsert-kafka"
KAFKA = "kafka"


class Support(str, Enum):
    """What the bridge does with an option; docs/options.md defines the values."""

    HONOURED = "honoured"
    TRANSLATED = "translated"
    IGNORED = "without effect"
    REFUSED = "refused"


class Side(str, Enum):
    """The direction of a pipeline that an option affects: a source is ingested, a sink is published to."""

    BOTH = "both"
    SOURCE = "source"
    SINK = "sink"


@dataclass(frozen=True)
class Option(Generic[T_co]):
    """A key of WITH. `default` is the text of its default value. A key that ends in `.*` declares a prefix."""

    key: str
    kind: Kind[T_co]
    description: str
    default: str | None = None
    required: bool = False
    connectors: tuple[str, ...] = (UPSERT, KAFKA)
    side: Side = Side.BOTH
    support: Support = Support.HONOURED
    reason: str = ""
    """Why the option is not honoured, and what to do instead; empty for honoured options."""

    def __post_init__(self) -> None:
        if (self.support is Support.HONOURED) == bool(self.reason):
            raise ValueError(f"{self.key}: an option has a reason if and only if it is not honoured")
        if self.required and self.default is not None:
            raise ValueError(f"{self.key}: a required option has no default")

    def parse(self, text: str, masked: bool = False) -> T_co:
        """Parses `text`. Raises OptionError that names the key and, if `masked`, does not quote the text."""
        try:
            return self.kind.parse(text)
        except ValueError as error:
            if masked:
                raise OptionError(f"'{self.key}': its value (not shown) must be {self.kind.legal}") from None
            raise OptionError(f"'{self.key}': {error}") from None

    def named(self, key: str) -> Option[T_co]:
        """Returns the option under another key: with a format's prefix, or with a declared prefix completed."""
        return replace(self, key=key)

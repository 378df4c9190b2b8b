"""A setting of Kafka's clients as a value: who uses it, which values all of them take, what becomes of it.

Spark's reader is Kafka's Java client; the bridge sends and administers with librdkafka. A value that one of the
clients which use it does not take is refused for all: none is moved into a range.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from bridge.errors import OptionError
from bridge.options.kinds import Kind, choice
from bridge.options.model import KAFKA, UPSERT

__all__ = [
    "ALL_CLIENTS",
    "BOOL",
    "CONSUMER_CLIENTS",
    "INT_MAX",
    "LONG_MAX",
    "NAME",
    "PREFIX",
    "PRODUCER_CLIENTS",
    "TEXT",
    "Client",
    "Setting",
    "Treatment",
    "all_clients",
    "consumer_only",
    "ignored",
    "integer",
    "java_clients_only",
    "producer_only",
    "refused",
    "set_by_bridge",
]

PREFIX = "properties."
INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1


class Treatment(str, Enum):
    """What the bridge does with a setting."""

    HONOURED = "honoured"
    TRANSLATED = "translated"
    REFUSED = "refused"
    SET_BY_BRIDGE = "set by the bridge"
    IGNORED = "without effect"


class Client(str, Enum):
    """Which client uses a setting."""

    READER = "Spark's reader"
    ADMIN = "the admin clients"
    PRODUCER = "the producer"


ALL_CLIENTS = frozenset(Client)
CONSUMER_CLIENTS = frozenset({Client.READER})
PRODUCER_CLIENTS = frozenset({Client.PRODUCER})
_JAVA_CLIENTS = frozenset({Client.READER, Client.ADMIN})


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class Setting:
    """A client setting by its Java name."""

    key: str
    kind: Kind[Any]
    treatment: Treatment
    clients: frozenset[Client] = ALL_CLIENTS
    librdkafka: str | None = None
    """Its name in librdkafka; None where librdkafka is not told."""
    convert: Callable[[Any], str] = _text
    """Its value in librdkafka."""
    reason: str = ""
    """Why it is refused, set by the bridge or without effect, and the way out; or what its translation does."""
    default: str | None = None
    """The value that one which is refused may be given: what the clients do anyway."""
    connectors: tuple[str, ...] = (UPSERT, KAFKA)

    @property
    def is_applied(self) -> bool:
        """Whether a client is told of it."""
        return self.treatment in (Treatment.HONOURED, Treatment.TRANSLATED)

    def parse(self, text: str, masked: bool = False) -> Any:
        """The typed value. Raises OptionError with the legal values, and without the text if `masked`."""
        try:
            return self.kind.parse(text.strip())
        except ValueError:
            given = "its value (not shown)" if masked else f"'{text}'"
            raise OptionError(
                f"'{PREFIX}{self.key}': {given} is not legal; {self._expecting_clients()} {self.kind.legal}"
            ) from None

    def java(self, text: str) -> str:
        """The value as the Java client takes it."""
        return _text(self.parse(text, masked=True))

    def rdkafka(self, text: str) -> str:
        """The value as librdkafka takes it."""
        return self.convert(self.parse(text, masked=True))

    def check(self, connector: str, text: str, masked: bool = False) -> None:
        """Raise OptionError for a setting that is refused, and for a value that its clients do not take."""
        if connector not in self.connectors or self.treatment is Treatment.SET_BY_BRIDGE:
            raise OptionError(f"'{PREFIX}{self.key}' cannot be set: {self.reason}")
        if self.treatment is not Treatment.REFUSED:
            self.parse(text, masked)
        elif self.default is None or _items(text) != _items(self.default):
            raise OptionError(f"'{PREFIX}{self.key}' is refused: {self.reason}")

    def _expecting_clients(self) -> str:
        if self.librdkafka is None:
            return "Kafka's Java client, which reads, takes"
        if self.clients == PRODUCER_CLIENTS:
            return "librdkafka, which sends, takes"
        return "Kafka's Java client, which reads, and librdkafka, which sends and administers, both take"


def _items(text: str) -> list[str]:
    """What is compared: a list without regard to order, and without the spaces that Java drops."""
    return sorted(item.strip().lower() for item in text.split(","))


def integer(low: int, high: int = INT_MAX, *, also: int | None = None) -> Kind[int]:
    """A whole number from `low` to `high`, or `also`."""
    legal = f"a whole number from {low} to {high}" + ("" if also is None else f", or {also}")

    def parse(text: str) -> int:
        if not re.fullmatch(r"[+-]?[0-9]{1,20}", text) or not (low <= int(text) <= high or int(text) == also):
            raise ValueError(legal)
        return int(text)

    return Kind("Integer" if high <= INT_MAX else "Long", parse, legal)


def _plain(text: str) -> str:
    return text


def _name(text: str) -> str:
    if not text.strip():
        raise ValueError("it is empty; text is expected")
    return text


TEXT: Kind[str] = Kind("String", _plain, "text")
NAME: Kind[str] = Kind("String", _name, "text that is not empty")
BOOL: Kind[bool] = Kind(
    "Boolean", lambda text: choice("true", "false").parse(text) == "true", "true or false"
)


def all_clients(
    key: str,
    kind: Kind[Any],
    librdkafka: str | None = None,
    *,
    convert: Callable[[Any], str] = _text,
    reason: str = "",
) -> Setting:
    """All clients are told; librdkafka perhaps under another name."""
    name = librdkafka or key
    changed = name != key or convert is not _text
    treatment = Treatment.TRANSLATED if changed else Treatment.HONOURED
    return Setting(key, kind, treatment, ALL_CLIENTS, name, convert, reason)


def producer_only(
    key: str,
    kind: Kind[Any],
    librdkafka: str | None = None,
    *,
    convert: Callable[[Any], str] = _text,
    reason: str = "",
) -> Setting:
    """The producer alone is told."""
    return replace(
        all_clients(key, kind, librdkafka, convert=convert, reason=reason), clients=PRODUCER_CLIENTS
    )


def consumer_only(key: str, kind: Kind[Any], reason: str = "") -> Setting:
    """Spark's reader alone is told."""
    return Setting(key, kind, Treatment.HONOURED, CONSUMER_CLIENTS, reason=reason)


def java_clients_only(key: str, kind: Kind[Any], reason: str = "") -> Setting:
    """Kafka's Java clients are told, the reader and the admin client; librdkafka has no counterpart."""
    return Setting(key, kind, Treatment.HONOURED, _JAVA_CLIENTS, reason=reason)


def ignored(key: str, kind: Kind[Any], reason: str) -> Setting:
    """Legal, and nobody is told; `validate` warns with the reason."""
    return Setting(key, kind, Treatment.IGNORED, frozenset(), reason=reason)


def refused(key: str, reason: str, default: str | None = None) -> Setting:
    """An error with the reason, unless it is given `default`."""
    return Setting(key, TEXT, Treatment.REFUSED, frozenset(), reason=reason, default=default)


def set_by_bridge(key: str, reason: str) -> Setting:
    """An error: the bridge sets it."""
    return Setting(key, TEXT, Treatment.SET_BY_BRIDGE, frozenset(), reason=reason)

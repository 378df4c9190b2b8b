"""A setting of Kafka's clients as a value: its clients, the values that all of them accept, and its treatment.

Spark's reader is Kafka's Java client; the bridge sends records and administers topics with librdkafka. A value that
one of the clients of a setting does not accept is an error; values are never adjusted to a range.
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

PREFIX = "properties."
INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1


class Treatment(str, Enum):
    """How the bridge treats a setting; docs/options.md defines the values."""

    HONOURED = "honoured"
    TRANSLATED = "translated"
    REFUSED = "refused"
    SET_BY_BRIDGE = "set by the bridge"
    IGNORED = "without effect"


class Client(str, Enum):
    """A client that uses a setting."""

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
    """Its name in librdkafka; None if it is not passed to librdkafka."""
    convert: Callable[[Any], str] = _text
    """Converts the value to that of librdkafka."""
    reason: str = ""
    """Why it is refused, set by the bridge or without effect, and the way out; otherwise a note for the docs."""
    default: str | None = None
    """The value that a refused setting may have: the behaviour of the clients in any case."""
    connectors: tuple[str, ...] = (UPSERT, KAFKA)

    @property
    def is_applied(self) -> bool:
        """Whether the setting is passed to a client."""
        return self.treatment in (Treatment.HONOURED, Treatment.TRANSLATED)

    def parse(self, text: str, masked: bool = False) -> Any:
        """Returns the typed value. Raises OptionError with the legal values; it does not quote `text` if `masked`."""
        try:
            return self.kind.parse(text.strip())
        except ValueError:
            given = "its value (not shown)" if masked else f"'{text}'"
            raise OptionError(
                f"'{PREFIX}{self.key}': {given} is not legal; {self._expecting_clients()} {self.kind.legal}"
            ) from None

    def java(self, text: str) -> str:
        """Returns the value for Kafka's Java client."""
        return _text(self.parse(text, masked=True))

    def rdkafka(self, text: str) -> str:
        """Returns the value for librdkafka."""
        return self.convert(self.parse(text, masked=True))

    def check(self, connector: str, text: str, masked: bool = False) -> None:
        """Raises OptionError for a setting that cannot be set, and for a value that its clients do not accept."""
        if connector not in self.connectors or self.treatment is Treatment.SET_BY_BRIDGE:
            raise OptionError(f"'{PREFIX}{self.key}' cannot be set: {self.reason}")
        if self.treatment is not Treatment.REFUSED:
            self.parse(text, masked)
        elif self.default is None or _items(text) != _items(self.default):
            raise OptionError(f"'{PREFIX}{self.key}' is refused: {self.reason}")

    def _expecting_clients(self) -> str:
        if self.librdkafka is None:
            return "Kafka's Java client, which reads the topic, accepts"
        if self.clients == PRODUCER_CLIENTS:
            return "librdkafka, which sends the records, accepts"
        return "Kafka's Java client (reading) and librdkafka (sending, offsets) both accept"


def _items(text: str) -> list[str]:
    """Returns the items of a list setting for comparison: sorted, in lower case, without surrounding spaces."""
    return sorted(item.strip().lower() for item in text.split(","))


def integer(low: int, high: int = INT_MAX, *, also: int | None = None) -> Kind[int]:
    """Returns the type of whole numbers from `low` to `high`, and of the value `also`."""
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
        raise ValueError("it is empty; set a value or remove it")
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
    """A setting of all clients; `librdkafka` and `convert` give its name and value in librdkafka."""
    name = librdkafka or key
    changed = name != key or convert is not _text
    treatment = Treatment.TRANSLATED if changed else Treatment.HONOURED
    return Setting(key, kind, treatment, ALL_CLIENTS, name, convert, reason)


def producer_only(key: str, kind: Kind[Any], librdkafka: str | None = None, **more: Any) -> Setting:
    """A setting of the producer, which is librdkafka; `more` as for `all_clients`."""
    return replace(all_clients(key, kind, librdkafka, **more), clients=PRODUCER_CLIENTS)


def consumer_only(key: str, kind: Kind[Any], reason: str = "") -> Setting:
    """A setting of Spark's reader, which is the only consumer of the topic."""
    return Setting(key, kind, Treatment.HONOURED, CONSUMER_CLIENTS, reason=reason)


def java_clients_only(key: str, kind: Kind[Any], reason: str = "") -> Setting:
    """A setting of Kafka's Java clients: Spark's reader and the admin client. librdkafka has no counterpart."""
    return Setting(key, kind, Treatment.HONOURED, _JAVA_CLIENTS, reason=reason)


def ignored(key: str, kind: Kind[Any], reason: str) -> Setting:
    """A setting that is legal and passed to no client; `validate` prints a warning with `reason`."""
    return Setting(key, kind, Treatment.IGNORED, frozenset(), reason=reason)


def refused(key: str, reason: str, default: str | None = None) -> Setting:
    """A setting that is an error with `reason`, unless its value is `default`."""
    return Setting(key, TEXT, Treatment.REFUSED, frozenset(), reason=reason, default=default)


def set_by_bridge(key: str, reason: str) -> Setting:
    """A setting that is an error, because the bridge sets it itself."""
    return Setting(key, TEXT, Treatment.SET_BY_BRIDGE, frozenset(), reason=reason)

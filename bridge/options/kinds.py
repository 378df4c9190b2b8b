"""The types of options: parsers from text to a value. They raise ValueError, whose message may quote the text.

Grammar and messages follow Flink's ConfigurationUtils, TimeUtils and StructuredOptionsSplitter.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True)
class Kind(Generic[T_co]):
    """The type of an option. `legal` describes its values and completes "its value must be ..."."""

    name: str
    parse: Callable[[str], T_co]
    legal: str


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(
            f"Unrecognized option for boolean: {text}. Expected either true or false(case insensitive)"
        )
    return text.lower() == "true"


def _number(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"[+-]?[0-9]{1,20}", text) or not low <= int(text) <= high:
            raise ValueError(f"'{text}' is not a whole number from {low} to {high}")
        return int(text)

    return parse


_UNITS = {
    ("d", "day", "days"): 86_400_000_000_000,
    ("h", "hour", "hours"): 3_600_000_000_000,
    ("min", "m", "minute", "minutes"): 60_000_000_000,
    ("s", "sec", "secs", "second", "seconds"): 1_000_000_000,
    ("ms", "milli", "millis", "millisecond", "milliseconds"): 1_000_000,
    ("µs", "micro", "micros", "microsecond", "microseconds"): 1_000,
    ("ns", "nano", "nanos", "nanosecond", "nanoseconds"): 1,
}
_NANOS = {label: nanos for labels, nanos in _UNITS.items() for label in labels}
_ISO = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d{1,9}))?S)?)?", re.IGNORECASE)


_SIZES = {
    label: 1 << shift
    for shift, labels in (
        (0, ("b", "bytes")),
        (10, ("k", "kb", "kibibytes")),
        (20, ("m", "mb", "mebibytes")),
        (30, ("g", "gb", "gibibytes")),
        (40, ("t", "tb", "tebibytes")),
    )
    for label in labels
}


def size_bytes(text: str) -> int:
    """Parses a Flink MemorySize with a unit, as in '256 mb' or '1gb', to bytes; 1 kb is 1024 bytes."""
    match = re.fullmatch(r"([0-9]+)\s*([a-z]+)", text.strip().lower())
    if not match or match[2] not in _SIZES:
        raise ValueError(f"{text!r} is not a number with one of the units {', '.join(_SIZES)}")
    return int(match[1]) * _SIZES[match[2]]


def duration_ms(text: str) -> int:
    """Parses a Flink duration to milliseconds: '1s', '1 s', '5 min', 'PT1M', or a bare number of milliseconds.

    Fractions of a millisecond are truncated, as in Flink's Duration.toMillis.
    """
    trimmed = text.strip()
    number, label = re.fullmatch(r"([0-9]*)(.*)", trimmed, re.DOTALL).groups()  # type: ignore[union-attr]
    if not number:
        iso = _ISO.fullmatch(trimmed)
        if not iso or not any(iso.groups()):
            raise ValueError(
                f"text does not start with a number, and is not a valid ISO-8601 duration format: {trimmed}"
            )
        days, hours, minutes, seconds = (int(part or 0) for part in iso.groups()[:4])
        return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + int(
            (iso[5] or "").ljust(9, "0")[:3]
        )
    unit = label.strip().lower().replace("\u03bc", "µ")
    if unit and unit not in _NANOS:
        shown = ", ".join(f"({' | '.join(labels)})" for labels in _UNITS)
        raise ValueError(
            f"Time interval unit label '{unit}' does not match any of the recognized units: {shown}"
        )
    milliseconds = int(number) * _NANOS[unit or "ms"] // 1_000_000
    if milliseconds >= 2**63:
        raise ValueError(f"The value '{number}' cannot be represented as 64bit number (numeric overflow).")
    return milliseconds


def _list(text: str) -> tuple[str, ...]:
    """Splits `text` at ';' and trims the items. Quotes (' or ") protect ';'; a quote within them is doubled."""
    items = re.split(r";(?=(?:[^'\"]|'[^']*'|\"[^\"]*\")*\Z)", text.rstrip().removesuffix(";"))
    shown = tuple(_unquoted(item.strip()) for item in items)
    if not all(shown):
        raise ValueError(f"'{text}' has an empty item; items are separated by ';'")
    return shown


def _unquoted(item: str) -> str:
    if len(item) >= 2 and item[0] == item[-1] and item[0] in "'\"":
        return item[1:-1].replace(item[0] * 2, item[0])
    return item


def _pattern(text: str) -> str:
    """Accepts what Python can compile: for topic names its grammar agrees with Java's."""
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"'{text}' is not a valid regular expression: {error}") from None
    return text


def _topics(text: str) -> tuple[str, ...]:
    names = _list(text)
    for name in names:
        if not re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", name) or name in (".", ".."):
            raise ValueError(
                f"'{name}' is not a topic name: Kafka allows 1 to 249 letters, digits, '.', '_' and '-'"
            )
    return names


def _servers(text: str) -> str:
    for server in text.split(","):
        port = re.fullmatch(r"(?:[a-zA-Z0-9-]+://)?\[?[0-9a-zA-Z\-%._:]+\]?:([0-9]{1,5})", server.strip())
        if not port or not 0 < int(port[1]) < 65536:
            raise ValueError(f"'{server.strip()}' is not host:port; servers are separated by ','")
    return text


def partition_offsets(key: str) -> Kind[dict[int, int]]:
    """The type of 'partition:0,offset:42;partition:1,offset:300', as {partition: offset}; messages name `key`."""

    def parse(text: str) -> dict[int, int]:
        offsets: dict[int, int] = {}
        for pair in text.removesuffix(";").split(";"):
            match = re.fullmatch(r"partition:([0-9]{1,10}),offset:([0-9]{1,19})", pair)
            if not match:
                raise ValueError(
                    f"Invalid properties '{key}' should follow the format "
                    f"'partition:0,offset:42;partition:1,offset:300', but is '{text}'."
                )
            partition, offset = int(match[1]), int(match[2])
            if partition in offsets:
                raise ValueError(f"partition {partition} is listed twice in '{text}'")
            offsets[partition] = offset
        return offsets

    return Kind("String", parse, "of the form 'partition:0,offset:42;partition:1,offset:300'")


def choice(*values: str, subject: str = "", exact: bool = False) -> Kind[str]:
    """The type of an enum; values are case-insensitive unless `exact`, and parsed to their canonical spelling."""
    spelled = {value if exact else value.lower(): value for value in values}

    def parse(text: str) -> str:
        value = spelled.get(text if exact else text.lower())
        if value is None:
            of = f" for {subject}" if subject else ""
            raise ValueError(f"Unsupported value '{text}'{of}. Supported values are [{', '.join(values)}].")
        return value

    return Kind("Enum", parse, f"one of {', '.join(values)}")


def _text(text: str) -> str:
    return text


STRING: Kind[str] = Kind("String", _text, "text")
BOOLEAN: Kind[bool] = Kind("Boolean", _boolean, "true or false")
INT: Kind[int] = Kind("Integer", _number(-(2**31), 2**31 - 1), "a whole number")
POSITIVE_INT: Kind[int] = Kind("Integer", _number(1, 2**31 - 1), "a whole number of at least 1")
NON_NEGATIVE_LONG: Kind[int] = Kind("Long", _number(0, 2**63 - 1), "a whole number of at least 0")
DURATION: Kind[int] = Kind("Duration", duration_ms, "a duration like '1 s', '100 ms' or '5 min'")
LIST: Kind[tuple[str, ...]] = Kind("List<String>", _list, "items separated by ';'")
PATTERN: Kind[str] = Kind("String", _pattern, "a regular expression")
TOPICS: Kind[tuple[str, ...]] = Kind("List<String>", _topics, "topic names separated by ';'")
SERVERS: Kind[str] = Kind("String", _servers, "host:port addresses separated by ','")

"""Metadata of change documents: which fields of the envelope it needs, and its values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bridge.formats.sql import literal, null
from bridge.schema import DataType, MapType, RowField, RowType, ScalarType, quote

__all__ = ["BIGINT", "STRING", "Metadata", "Place", "as_is", "millis", "millis_of_text", "moment", "seconds"]

STRING, BIGINT = ScalarType("STRING"), ScalarType("BIGINT")

_WHOLE = "^[+-]?[0-9]+$"
_MOMENT = "^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,9})?Z?$"


@dataclass(frozen=True)
class Place:
    """Where a metadata key comes from: a field of the document, or of an object in it, and how it is read."""

    field: str
    type: DataType = STRING
    inner: str | None = None
    """The field inside the object `field`, a text; `type` is then of no account."""
    read: Callable[[str], str] = lambda raw: raw
    """SQL of the value, null for what cannot be read."""
    whole: bool = False
    """The object as a map of texts: others that look into it read it from there."""


def as_is(raw: str) -> str:
    """The value that was read."""
    return raw


def millis(raw: str) -> str:
    """A moment from milliseconds since the epoch; null beyond Spark's range."""
    return f"timestamp_micros(try_multiply({raw}, 1000L))"


def seconds(raw: str) -> str:
    """A moment from seconds since the epoch; null beyond Spark's range."""
    return f"timestamp_micros(try_multiply({raw}, 1000000L))"


def millis_of_text(raw: str) -> str:
    """A moment from milliseconds written as a text (Java's parseLong)."""
    return millis(f"IF({raw} RLIKE {literal(_WHOLE)}, TRY_CAST({raw} AS BIGINT), NULL)")


def moment(raw: str) -> str:
    """A moment from a date and time of UTC, with a space or T between, or from milliseconds."""
    told = f"date_trunc('MILLISECOND', TRY_CAST({raw} AS TIMESTAMP))"
    return f"IF({raw} RLIKE {literal(_MOMENT)}, {told}, {millis_of_text(raw)})"


class Metadata:
    """The metadata that a decoder was asked for."""

    def __init__(self, asked: RowType, places: Mapping[str, Place]) -> None:
        """Raises KeyError for a key that `places` does not have: options.FORMATS declares the same keys."""
        self.type = asked
        self.places = [(name, places[name]) for name in asked.names]
        self.whole = {p.field for _, p in self.places if p.whole}

    def fields(self, *, but: tuple[str, ...] = ()) -> tuple[RowField, ...]:
        """The fields of the envelope that are needed, each once; without those called `but`."""
        found: dict[str, DataType] = {}
        for _, place in self.places:
            if place.inner is None or place.field in self.whole:
                found[place.field] = MapType(STRING, STRING) if place.field in self.whole else place.type
            else:
                inside = found.get(place.field, RowType(()))
                assert isinstance(inside, RowType)
                if place.inner not in inside.names:
                    found[place.field] = RowType((*inside.fields, RowField(place.inner, STRING)))
        return tuple(RowField(name, type) for name, type in found.items() if name not in but)

    def value(self, raw: Callable[[str], str]) -> str:
        """The struct of all values; `raw` gives the SQL of a field of the envelope."""
        pairs = [f"{literal(name)}, {place.read(self._raw(place, raw))}" for name, place in self.places]
        return f"CAST(named_struct({', '.join(pairs)}) AS {self.type.spark()})"

    def error(self, value: str, raw: Callable[[str], str], prefix: str = "") -> str:
        """The first field that is there and cannot be read, as an error; a null text when there is none."""
        found = []
        for name, place in self.places:
            if place.read is not as_is:
                path = prefix + place.field + (f".{place.inner}" if place.inner else "")
                unread = f"{self._raw(place, raw)} IS NOT NULL AND {value}.{quote(name)} IS NULL"
                found.append(
                    f"WHEN {unread} THEN {literal(f'field {path!r} cannot be read as TIMESTAMP_LTZ')}"
                )
        return f"CASE {' '.join(found)} END" if found else null("STRING")

    def _raw(self, place: Place, raw: Callable[[str], str]) -> str:
        if place.inner is None:
            return raw(place.field)
        if place.field in self.whole:
            return f"{raw(place.field)}[{literal(place.inner)}]"
        return f"{raw(place.field)}.{quote(place.inner)}"

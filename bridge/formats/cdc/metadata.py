"""Metadata of change documents: the fields of the envelope that it is read from, and its values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bridge.formats.sql import literal, null
from bridge.schema import DataType, MapType, RowField, RowType, ScalarType, quote

STRING, BIGINT = ScalarType("STRING"), ScalarType("BIGINT")

_WHOLE = "^[+-]?[0-9]+$"
_MOMENT = "^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,9})?Z?$"


@dataclass(frozen=True)
class Place:
    """The field that a metadata key is read from, of the document or of an object in it, and how."""

    field: str
    type: DataType = STRING
    inner: str | None = None
    """The field inside the object `field`, a text; `type` is ignored then."""
    read: Callable[[str], str] = lambda raw: raw
    """Makes SQL of the value, null for a field that cannot be read."""
    whole: bool = False
    """The object is read as a map of texts, from which keys with an `inner` field of it are read, too."""


def as_is(raw: str) -> str:
    """Return the field's value unchanged."""
    return raw


def millis(raw: str) -> str:
    """Return the timestamp of milliseconds since the epoch; null beyond Spark's range."""
    return f"timestamp_micros(try_multiply({raw}, 1000L))"


def seconds(raw: str) -> str:
    """Return the timestamp of seconds since the epoch; null beyond Spark's range."""
    return f"timestamp_micros(try_multiply({raw}, 1000000L))"


def millis_of_text(raw: str) -> str:
    """Return the timestamp of milliseconds that are written as text (Java's parseLong)."""
    return millis(f"IF({raw} RLIKE {literal(_WHOLE)}, TRY_CAST({raw} AS BIGINT), NULL)")


def date_or_millis(raw: str) -> str:
    """Return the timestamp of a date and time in UTC, with a space or T between them, or of milliseconds."""
    of_text = f"date_trunc('MILLISECOND', TRY_CAST({raw} AS TIMESTAMP))"
    return f"IF({raw} RLIKE {literal(_MOMENT)}, {of_text}, {millis_of_text(raw)})"


class Metadata:
    """The metadata that the rows of a decoder carry."""

    def __init__(self, requested: RowType, places: Mapping[str, Place]) -> None:
        """Raise KeyError for a key that `places` does not have; DeclaredFormat.metadata has the same keys."""
        self.type = requested
        self.places = [(name, places[name]) for name in requested.names]
        self.whole = {p.field for _, p in self.places if p.whole}

    def fields(self, *, but: tuple[str, ...] = ()) -> tuple[RowField, ...]:
        """Return the fields of the envelope that are needed, each once; without those named in `but`."""
        types: dict[str, DataType] = {}
        for _, place in self.places:
            if place.inner is None or place.field in self.whole:
                types[place.field] = MapType(STRING, STRING) if place.field in self.whole else place.type
            else:
                inside = types.get(place.field, RowType(()))
                assert isinstance(inside, RowType)
                if place.inner not in inside.names:
                    types[place.field] = RowType((*inside.fields, RowField(place.inner, STRING)))
        return tuple(RowField(name, type) for name, type in types.items() if name not in but)

    def value(self, raw: Callable[[str], str]) -> str:
        """Return the struct of all values; `raw` makes SQL of a field of the envelope."""
        pairs = [f"{literal(name)}, {place.read(self._raw(place, raw))}" for name, place in self.places]
        return f"CAST(named_struct({', '.join(pairs)}) AS {self.type.spark()})"

    def error(self, value: str, raw: Callable[[str], str], prefix: str = "") -> str:
        """Return the error of the first field that is present and cannot be read; a null text where all can."""
        branches = []
        for name, place in self.places:
            if place.read is not as_is:
                path = prefix + place.field + (f".{place.inner}" if place.inner else "")
                unread = f"{self._raw(place, raw)} IS NOT NULL AND {value}.{quote(name)} IS NULL"
                branches.append(
                    f"WHEN {unread} THEN {literal(f'field {path!r} cannot be read as TIMESTAMP_LTZ')}"
                )
        return f"CASE {' '.join(branches)} END" if branches else null("STRING")

    def _raw(self, place: Place, raw: Callable[[str], str]) -> str:
        if place.inner is None:
            return raw(place.field)
        if place.field in self.whole:
            return f"{raw(place.field)}[{literal(place.inner)}]"
        return f"{raw(place.field)}.{quote(place.inner)}"

"""The formats this version has, by Flink's names."""

from __future__ import annotations

from bridge.errors import OptionError, UnsupportedError
from bridge.formats.avro import AvroFormat
from bridge.formats.avro.confluent import AvroConfluentFormat
from bridge.formats.base import Format
from bridge.formats.cdc import CanalJsonFormat, DebeziumJsonFormat, MaxwellJsonFormat, OggJsonFormat
from bridge.formats.csv import CsvFormat
from bridge.formats.debezium_avro import DebeziumAvroFormat
from bridge.formats.json import JsonFormat
from bridge.formats.raw import RawFormat

__all__ = ["available", "get"]

_FORMATS: dict[str, Format] = {
    "json": JsonFormat(),
    "csv": CsvFormat(),
    "raw": RawFormat(),
    "debezium-json": DebeziumJsonFormat(),
    "canal-json": CanalJsonFormat(),
    "maxwell-json": MaxwellJsonFormat(),
    "ogg-json": OggJsonFormat(),
    "avro": AvroFormat(),
    "avro-confluent": AvroConfluentFormat(),
    "debezium-avro-confluent": DebeziumAvroFormat(),
}

_NOT_YET = ("protobuf",)


def available() -> tuple[str, ...]:
    """The names `get` knows, sorted."""
    return tuple(sorted(_FORMATS))


def get(name: str) -> Format:
    """The format of that name.

    Raises UnsupportedError for a format of Flink's that is not here yet, OptionError for any other name.
    """
    if name in _FORMATS:
        return _FORMATS[name]
    listed = ", ".join(available())
    if name in _NOT_YET:
        raise UnsupportedError(
            f"format '{name}' is not supported yet; available: {listed}", what=f"format '{name}'"
        )
    raise OptionError(f"format '{name}' is unknown; available: {listed}")

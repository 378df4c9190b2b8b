"""What a METADATA column can be read from, and which types it may be declared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from bridge.errors import OptionError
from bridge.options.formats import DeclaredFormat
from bridge.options.model import Fate
from bridge.schema import DataType, MapType, MetadataColumn, ScalarType

__all__ = ["METADATA", "Metadata", "check_metadata"]


@dataclass(frozen=True)
class Metadata:
    """A metadata key of both connectors. `accepts` is the set of types that Flink casts it to."""

    key: str
    type: str
    writable: bool
    accepts: Callable[[DataType], bool]
    casts: str
    description: str
    fate: Fate = Fate.HONOURED


def _scalar(*names: str) -> Callable[[DataType], bool]:
    return lambda type: isinstance(type, ScalarType) and type.name in names


_TEXT = ("CHAR", "VARCHAR", "STRING")
_NUMBER = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL")
_TEXTS = _scalar(*_TEXT)
_NUMBERS = _scalar(*_NUMBER, *_TEXT)
_TIMES = _scalar("TIMESTAMP", "TIMESTAMP_LTZ", "DATE", *_TEXT)


def _headers(type: DataType) -> bool:
    if not isinstance(type, MapType) or not isinstance(type.value, ScalarType):
        return False
    return _TEXTS(type.key) and (type.value.is_binary or type.value.is_string)


def _refused(type: DataType) -> bool:
    return True


_STRINGS, _NUMERIC = "character strings", "numbers and character strings"

METADATA: Mapping[str, Metadata] = MappingProxyType(
    {
        metadata.key: metadata
        for metadata in (
            Metadata("topic", "STRING NOT NULL", True, _TEXTS, _STRINGS, "Topic of the record."),
            Metadata("partition", "INT NOT NULL", False, _NUMBERS, _NUMERIC, "Partition of the record."),
            Metadata(
                "headers",
                "MAP<STRING NOT NULL, BYTES NOT NULL> NOT NULL",
                True,
                _headers,
                "maps from character strings to bytes or character strings",
                "Headers of the record; of equal names the last counts.",
            ),
            Metadata("offset", "BIGINT NOT NULL", False, _NUMBERS, _NUMERIC, "Offset in the partition."),
            Metadata(
                "timestamp",
                "TIMESTAMP_LTZ(3) NOT NULL",
                True,
                _TIMES,
                "TIMESTAMP, TIMESTAMP_LTZ, DATE and character strings",
                "Timestamp of the record.",
            ),
            Metadata(
                "timestamp-type",
                "STRING NOT NULL",
                False,
                _TEXTS,
                _STRINGS,
                "'NoTimestampType', 'CreateTime' or 'LogAppendTime'.",
            ),
            Metadata(
                "leader-epoch",
                "INT",
                False,
                _refused,
                "nothing yet",
                "Leader epoch of the record; Spark does not read it.",
                Fate.NOT_YET,
            ),
            Metadata(
                "header-list",
                "ARRAY<ROW<STRING, BYTES>>",
                False,
                _refused,
                "nothing yet",
                "Headers with equal names kept apart.",
                Fate.NOT_YET,
            ),
        )
    }
)


def check_metadata(column: MetadataColumn, value_format: DeclaredFormat) -> None:
    """Raise OptionError for a metadata key that does not exist, or a type it cannot be cast to."""
    if column.key.startswith("value.") and column.key.removeprefix("value.") in value_format.metadata:
        return
    found = METADATA.get(column.key)
    if found is None:
        legal = [*METADATA, *(f"value.{key}" for key in value_format.metadata)]
        raise OptionError(
            f"Invalid metadata key '{column.key}' in column '{column.name}': the connector and the format "
            f"'{value_format.name}' provide {', '.join(legal)}"
        )
    if not found.accepts(column.type):
        raise OptionError(
            f"Invalid data type for metadata column '{column.name}': '{column.key}' is {found.type} and can "
            f"be "
            f"read as {found.casts}, not as {column.type.flink()}"
        )

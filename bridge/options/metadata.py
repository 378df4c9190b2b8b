"""The keys of METADATA columns, and the types with which a column of each key may be declared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from bridge.errors import OptionError
from bridge.options.formats import DeclaredFormat
from bridge.options.model import KAFKA, UPSERT
from bridge.schema import ArrayType, DataType, MapType, MetadataColumn, RowType, ScalarType


@dataclass(frozen=True)
class Metadata:
    """A metadata key of `connectors`. `accepts` tests whether Flink casts the key to a type."""

    key: str
    type: str
    writable: bool
    accepts: Callable[[DataType], bool]
    casts: str
    description: str
    connectors: tuple[str, ...] = (UPSERT, KAFKA)


ROW_KIND = "row-kind"
ROW_NUMBER = "row-number"
"""The key of a column that no DDL declares: the number of a row in its document, from 0 (`delta.history: append`)."""


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


def _header_list(type: DataType) -> bool:
    if not isinstance(type, ArrayType) or not isinstance(type.element, RowType):
        return False
    fields = [field.type for field in type.element.fields]
    return len(fields) == 2 and _headers(MapType(fields[0], fields[1]))


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
                _NUMBERS,
                _NUMERIC,
                "Leader epoch in which the record was appended; null if the broker does not store leader epochs. "
                "Spark's source does not provide it, so the bridge requests the epochs of a batch from the broker.",
            ),
            Metadata(
                "header-list",
                "ARRAY<ROW<key STRING, value BYTES>> NOT NULL",
                True,
                _header_list,
                "arrays of rows of a character string and bytes (or a character string)",
                "Headers of the record in order, including those with the same name.",
            ),
            Metadata(
                ROW_KIND,
                "STRING NOT NULL",
                False,
                _TEXTS,
                _STRINGS,
                "Row kind of the change: '+I', '-U', '+U' or '-D'. For tables without a PRIMARY KEY and with a CDC "
                "format, in which every change becomes a row. An extension of the bridge; Flink does not have this "
                "key.",
                connectors=(KAFKA,),
            ),
        )
    }
)


def check_metadata(
    column: MetadataColumn, connector: str, value_format: DeclaredFormat, *, keyed: bool
) -> None:
    """Raises OptionError if the metadata key does not exist or cannot be cast to the declared type.

    `keyed`: the table has a PRIMARY KEY.
    """
    format_type = value_format.metadata.get(column.key.removeprefix("value."))
    if column.key.startswith("value.") and format_type is not None:
        if not _is_castable(format_type, column.type):
            raise OptionError(
                f"Invalid data type for metadata column '{column.name}': '{column.key}' is {format_type.flink()} "
                f"and cannot be read as {column.type.flink()}; declare {format_type.flink()}"
            )
        return
    metadata = METADATA.get(column.key)
    if metadata is None or connector not in metadata.connectors:
        connector_keys = [key for key, metadata in METADATA.items() if connector in metadata.connectors]
        legal = [*connector_keys, *(f"value.{key}" for key in value_format.metadata)]
        raise OptionError(
            f"Invalid metadata key '{column.key}' in column '{column.name}': the connector and the format "
            f"'{value_format.name}' provide {', '.join(legal)}"
        )
    if not metadata.accepts(column.type):
        raise OptionError(
            f"Invalid data type for metadata column '{column.name}': '{column.key}' is {metadata.type} and can be "
            f"read as {metadata.casts}, not as {column.type.flink()}"
        )
    if column.key == ROW_KIND and keyed:
        raise OptionError(
            f"column '{column.name}': '{ROW_KIND}' is for tables without a PRIMARY KEY. In a table with a PRIMARY KEY, "
            "changes are merged into the row of their key; remove the column"
        )


def _is_castable(format_type: DataType, declared: DataType) -> bool:
    """Returns whether Flink casts metadata of a format to the declared type, with the same result as Spark."""
    if replace(format_type, nullable=True) == replace(declared, nullable=True):
        return True
    if not isinstance(format_type, ScalarType) or not isinstance(declared, ScalarType):
        return format_type.spark() == declared.spark()
    return (_TIMES if format_type.name.startswith("TIMESTAMP") else _TEXTS)(declared)

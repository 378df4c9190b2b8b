"""Metadata columns: keys, and the types that Flink casts them to."""

from __future__ import annotations

import re

import pytest

from bridge.ddl import parse
from bridge.errors import OptionError
from bridge.options import FORMATS, KAFKA, UPSERT
from bridge.options.metadata import check_metadata
from bridge.schema import MetadataColumn


def _column(declared: str) -> MetadataColumn:
    schema = parse(f"CREATE TABLE t (id INT, {declared}) WITH ('connector' = 'kafka')").schema
    return schema.metadata[0]


@pytest.mark.parametrize(
    "declared",
    [
        "topic STRING METADATA VIRTUAL",
        "topic VARCHAR(20) METADATA",
        "`partition` INT METADATA",
        "`partition` BIGINT METADATA VIRTUAL",
        "`offset` DECIMAL(20, 0) METADATA VIRTUAL",
        "h MAP<STRING, BYTES> METADATA FROM 'headers'",
        "h MAP<STRING, STRING> METADATA FROM 'headers'",
        "ts TIMESTAMP(3) METADATA FROM 'timestamp'",
        "ts TIMESTAMP_LTZ(3) METADATA FROM 'timestamp'",
        "ts STRING METADATA FROM 'timestamp'",
        "tt STRING NOT NULL METADATA FROM 'timestamp-type' VIRTUAL",
        "epoch INT METADATA FROM 'leader-epoch' VIRTUAL",
        "h ARRAY<ROW<k STRING, v BYTES>> METADATA FROM 'header-list'",
        "kind STRING METADATA FROM 'row-kind' VIRTUAL",
    ],
)
def test_types_that_flink_casts_to(declared: str) -> None:
    check_metadata(_column(declared), KAFKA, FORMATS["json"], keyed=False)


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (
            "x STRING METADATA FROM 'time'",
            "Invalid metadata key 'time' in column 'x': the connector and the format 'json' provide topic, "
            "partition, headers, offset, timestamp, timestamp-type, leader-epoch, header-list, row-kind",
        ),
        (
            "ts BIGINT METADATA FROM 'timestamp'",
            "Invalid data type for metadata column 'ts': 'timestamp' is TIMESTAMP_LTZ(3) NOT NULL and can be "
            "read "
            "as TIMESTAMP, TIMESTAMP_LTZ, DATE and character strings, not as BIGINT",
        ),
        ("`partition` BOOLEAN METADATA", "'partition' is INT NOT NULL and can be read as numbers"),
        ("h MAP<STRING, INT> METADATA FROM 'headers'", "can be read as maps from character strings to bytes"),
        ("h STRING METADATA FROM 'headers'", "not as STRING"),
        ("h ARRAY<STRING> METADATA FROM 'header-list'", "arrays of rows of a character string and bytes"),
        ("o STRING METADATA FROM 'value.source.table'", "Invalid metadata key 'value.source.table'"),
    ],
)
def test_illegal_keys_and_types(declared: str, message: str) -> None:
    with pytest.raises(OptionError, match=re.escape(message)):
        check_metadata(_column(declared), KAFKA, FORMATS["json"], keyed=False)


def test_metadata_of_the_value_format() -> None:
    column = _column("o STRING METADATA FROM 'value.source.table' VIRTUAL")
    check_metadata(column, KAFKA, FORMATS["debezium-json"], keyed=True)
    with pytest.raises(OptionError, match=re.escape("provide topic, partition, headers")) as error:
        check_metadata(
            _column("o STRING METADATA FROM 'value.sauce'"), KAFKA, FORMATS["debezium-json"], keyed=True
        )
    assert "value.source.table" in str(error.value)


@pytest.mark.parametrize("type", ["TIMESTAMP(3)", "TIMESTAMP_LTZ(3) NOT NULL", "STRING", "TIMESTAMP_LTZ(0)"])
def test_legal_types_of_format_metadata(type: str) -> None:
    column = _column(f"o {type} METADATA FROM 'value.source.timestamp' VIRTUAL")
    check_metadata(column, KAFKA, FORMATS["debezium-json"], keyed=True)


@pytest.mark.parametrize(
    ("key", "type", "format_type"),
    [
        ("source.timestamp", "BIGINT", "TIMESTAMP_LTZ(3)"),
        ("source.table", "INT", "STRING"),
        ("source.properties", "STRING", "MAP<STRING, STRING>"),
    ],
)
def test_illegal_types_of_format_metadata(key: str, type: str, format_type: str) -> None:
    column = _column(f"o {type} METADATA FROM 'value.{key}' VIRTUAL")
    message = f"Invalid data type for metadata column 'o': 'value.{key}' is {format_type} and cannot be read as {type}"
    with pytest.raises(OptionError, match=re.escape(message)):
        check_metadata(column, KAFKA, FORMATS["debezium-json"], keyed=True)


def test_a_row_kind_is_for_tables_without_a_primary_key() -> None:
    column = _column("kind STRING METADATA FROM 'row-kind' VIRTUAL")
    with pytest.raises(OptionError, match="'row-kind' is for tables without a PRIMARY KEY"):
        check_metadata(column, KAFKA, FORMATS["debezium-json"], keyed=True)
    with pytest.raises(OptionError, match="Invalid metadata key 'row-kind'"):
        check_metadata(column, UPSERT, FORMATS["json"], keyed=True)

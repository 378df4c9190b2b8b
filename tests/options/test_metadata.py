"""Metadata columns: keys, and types by Flink's casts."""

from __future__ import annotations

import re

import pytest

from bridge.ddl import parse
from bridge.errors import OptionError
from bridge.options import FORMATS
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
    ],
)
def test_types_that_flink_casts_to(declared: str) -> None:
    check_metadata(_column(declared), FORMATS["json"])


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (
            "x STRING METADATA FROM 'time'",
            "Invalid metadata key 'time' in column 'x': the connector and the format 'json' provide topic, "
            "partition, headers, offset, timestamp, timestamp-type, leader-epoch, header-list",
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
        ("o STRING METADATA FROM 'value.source.table'", "Invalid metadata key 'value.source.table'"),
    ],
)
def test_keys_and_types_that_are_refused(declared: str, message: str) -> None:
    with pytest.raises(OptionError, match=re.escape(message)):
        check_metadata(_column(declared), FORMATS["json"])


def test_metadata_of_the_value_format() -> None:
    column = _column("o STRING METADATA FROM 'value.source.table' VIRTUAL")
    check_metadata(column, FORMATS["debezium-json"])
    with pytest.raises(OptionError, match=re.escape("provide topic, partition, headers")) as caught:
        check_metadata(_column("o STRING METADATA FROM 'value.sauce'"), FORMATS["debezium-json"])
    assert "value.source.table" in str(caught.value)

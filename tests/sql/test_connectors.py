"""The tables of a script: connectors, options, and the changes that they give and take."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.definition import DeltaTarget
from bridge.sql.connectors import Connector
from tests.sql.scripts import CONNECTORS, KAFKA, UPSERT, load, script_refusal


def table(columns: str, options: str) -> str:
    return f"CREATE TABLE t ({columns}) WITH ({options});"


@pytest.mark.parametrize(
    ("name", "columns", "source", "updating", "accepts"),
    [
        ("upsert-kafka", "a INT, PRIMARY KEY (a) NOT ENFORCED", True, True, True),
        ("kafka", "a INT", True, False, False),
        ("debezium", "a INT", True, True, True),
        ("debezium", "a INT, PRIMARY KEY (a) NOT ENFORCED", True, True, True),
        ("delta", "a INT", True, False, False),
        ("delta", "a INT, PRIMARY KEY (a) NOT ENFORCED", True, True, True),
        ("print", "a INT", False, False, True),
        ("blackhole", "a INT", False, False, True),
    ],
)
def test_changes(name: str, columns: str, source: bool, updating: bool, accepts: bool) -> None:
    (found,) = load(table(columns, CONNECTORS[name])).tables
    assert (found.is_source, found.is_updating, found.accepts_updates) == (source, updating, accepts)
    assert found.connector is Connector("kafka" if name == "debezium" else name)


def test_delta_by_path_and_by_name() -> None:
    by_path, alias, by_name = (
        load(table("a INT", f"'connector' = 'delta', {options}")).tables[0]
        for options in (
            "'path' = 'lake/t', 'delta.appendOnly' = 'true'",
            "'table-path' = 's3://b/t'",
            "'table' = 'c.d.t'",
        )
    )
    assert by_path.delta == DeltaTarget(
        str(Path("lake/t").absolute()), properties={"delta.appendOnly": "true"}
    )
    assert (by_path.written_place, by_path.place) == ("lake/t", str(Path("lake/t").absolute()))
    assert alias.delta == DeltaTarget("s3://b/t")
    assert by_name.delta == DeltaTarget(table="c.d.t")
    assert by_name.written_place == by_name.place == "c.d.t"


def test_columns_that_an_insert_writes() -> None:
    columns = "a INT, b AS a + 1, c TIMESTAMP_LTZ(3) METADATA FROM 'timestamp', o BIGINT METADATA FROM 'offset' VIRTUAL"
    (found,) = load(table(columns, CONNECTORS["kafka"])).tables
    assert [column.name for column in found.sink_columns] == ["a", "c"]


def test_secrets_are_masked() -> None:
    options = f"{CONNECTORS['kafka']}, 'properties.sasl.jaas.config' = 'm.L required password=\"x\";'"
    (found,) = load(table("a INT", options)).tables
    assert str(found.masked_options["properties.sasl.jaas.config"]) == "******"


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (
            "a INT",
            "'path' = 'x'",
            "14: table `t`: 'connector' is missing in WITH; the connectors of a script are "
            "upsert-kafka, kafka, delta, print, blackhole",
        ),
        (
            "a INT",
            "'connector' = 'kafkaa'",
            "30: table `t`: 'connector' = 'kafkaa' is not supported; did you mean 'kafka'?",
        ),
        (
            "a INT",
            "'connector' = 'jdbc'",
            "30: table `t`: 'connector' = 'jdbc' is not supported; the connectors of a "
            "script are upsert-kafka, kafka, delta, print, blackhole",
        ),
        (
            "a INT",
            "'connector' = 'delta'",
            "14: table `t`: connector 'delta' requires one of 'path' (or 'table-path') "
            "and 'table'; none is set",
        ),
        (
            "a INT",
            "'connector' = 'delta', 'path' = 'a', 'table' = 'b'",
            "14: table `t`: connector 'delta' requires one "
            "of 'path' (or 'table-path') and 'table'; 'path' and 'table' are set",
        ),
        ("a INT", "'connector' = 'delta', 'path' = ''", "53: table `t`: 'path' is empty; set a value"),
        (
            "a INT",
            "'connector' = 'delta', 'pth' = 'a'",
            "53: table `t`: 'pth' is not an option of connector 'delta'; did you mean 'path'?",
        ),
        (
            "a INT",
            "'connector' = 'blackhole', 'x' = 'a'",
            "57: table `t`: 'x' is not an option of connector "
            "'blackhole'; its options are none but 'connector'",
        ),
        (
            "a INT, `timestamp` TIMESTAMP_LTZ(3) METADATA",
            "'connector' = 'print'",
            "14: table `t`: column 'timestamp': connector 'print' has no metadata; remove METADATA",
        ),
        (
            "__a INT",
            "'connector' = 'print'",
            "14: table `t`: column '__a': names that start with two underscores are "
            "reserved for the bridge; rename the column",
        ),
        (
            "a INT",
            f"{UPSERT}, 'topic' = 's'",
            "14: table `t`: 'upsert-kafka' tables require to define a PRIMARY KEY "
            "constraint. The PRIMARY KEY specifies which columns should be read from or write to the Kafka "
            "message key. "
            "The PRIMARY KEY also defines records in the 'upsert-kafka' table should update or delete on which keys.",
        ),
        (
            "a INT",
            f"'connector' = 'kafka', {KAFKA}, 'topik' = 's', 'format' = 'json'",
            "93: table `t`: 'topik' is not an option of connector 'kafka'; did you mean 'topic'?",
        ),
        (
            "a INT",
            "'connector' = 'delta', 'path' = '${env:LAKE}'",
            "53: 'path': the environment variable LAKE is not set; set it, give --env LAKE=..., or add a default: "
            "${env:LAKE:...}",
        ),
        (
            "a DOUBLE, PRIMARY KEY (a) NOT ENFORCED",
            "'connector' = 'delta', 'path' = 'x'",
            "14: table `t`: column 'a' DOUBLE cannot be in the PRIMARY KEY: the equality of DOUBLE values "
            "differs between "
            "systems, so the row of a key might not be found; declare STRING or DECIMAL",
        ),
        (
            "a ROW<b INT>, PRIMARY KEY (a) NOT ENFORCED",
            "'connector' = 'delta', 'path' = 'x'",
            "14: table `t`: a ROW in the PRIMARY KEY is not supported in this version: declare the fields of "
            "column 'a' "
            "as separate columns",
        ),
    ],
)
def test_refused(columns: str, options: str, message: str) -> None:
    assert script_refusal(table(columns, options)) == f"t.sql:1:{message}"


def test_headers_with_the_name_of_the_table() -> None:
    """A script has no Delta table with a name of its own for a topic, so it is that of the DDL."""
    on = f"{UPSERT}, 'topic' = 's', 'sink.add-tableId-to-header-enabled' = 'true'"
    columns = "a INT, PRIMARY KEY (a) NOT ENFORCED"
    headers = [load(table(columns, options)).tables[0].topic for options in (on, CONNECTORS["upsert-kafka"])]
    assert [found and found.sink.headers for found in headers] == [
        (("namespace", ""), ("schemaName", ""), ("tableName", "t")),
        (),
    ]

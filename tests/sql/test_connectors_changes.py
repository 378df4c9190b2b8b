"""`bridge.sequence-by` and others in WITH: how the changes of a topic that a script reads are applied."""

from __future__ import annotations

import pytest

from bridge.definition import DeltaTarget, Truncate
from bridge.pipelines.scripts.state import ScriptState
from tests.sql.scripts import CONNECTORS, load, script_refusal

COLUMNS = "id INT, v STRING, at BIGINT, PRIMARY KEY (id) NOT ENFORCED"


def script(options: str, connector: str = "debezium") -> str:
    return (
        f"CREATE TABLE t ({COLUMNS}) WITH ({CONNECTORS[connector]}{options});\n"
        f"CREATE TABLE s (id INT, v STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ({CONNECTORS['print']});\n"
        "INSERT INTO s SELECT id, v FROM t;"
    )


def order(options: str) -> DeltaTarget:
    loaded = load(script(options))
    assert not [w for w in loaded.warnings if "sequence" in w]
    state = ScriptState(loaded)
    ingest = state.ingest(state.tables["t"])
    assert ingest is not None and ingest.delta.path == f"{state.folder}/sources/t"
    return ingest.delta


def test_the_table_that_keeps_the_rows_has_them() -> None:
    assert order("").sequence_by == ()
    assert order(", 'bridge.sequence-by' = 'at'").sequence_by == ("at",)
    found = order(", 'bridge.sequence-by' = 'at; v', 'bridge.delete-memory' = '36 h'")
    assert (found.sequence_by, found.delete_memory_seconds) == (("at", "v"), 129_600.0)
    assert order(", 'bridge.ignore-null-updates' = 'true'").ignore_nulls == ("v", "at")
    assert order(", 'bridge.ignore-null-updates' = 'at;v'").ignore_nulls == ("v", "at")
    assert order(", 'bridge.ignore-null-updates' = 'false'").ignore_nulls == ()
    condition = order(", 'bridge.apply-as-delete' = 'at < 0'").apply_as_delete
    assert condition is not None and condition.expression == "at < 0"
    assert order(", 'bridge.truncate' = 'apply'").truncate is Truncate.APPLY
    found = order(", 'bridge.apply-as-truncate' = 'at < 0', 'bridge.truncate' = 'ignore'")
    assert found.change_semantics == {"truncate": "ignore", "apply-as-truncate": "at < 0"}
    found = order(", 'bridge.first-row' = 'true', 'bridge.ignore-delete' = 'true'")
    assert found.change_semantics == {"first-row": "true", "ignore-delete": "true"}
    assert order(", 'bridge.aggregate' = 'at: max; v:first'").change_semantics == {
        "aggregate": "v: first, at: max"
    }


def test_a_table_that_nothing_reads() -> None:
    text = script(", 'bridge.sequence-by' = 'at'").rpartition("INSERT")[0]
    assert load(text).warnings == ("table t: 'bridge.sequence-by' has no effect: no INSERT reads the table",)


@pytest.mark.parametrize(
    ("options", "connector", "message"),
    [
        (", 'bridge.sequence-by' = 'x'", "debezium", "'bridge.sequence-by': 'x' is not a column of the DDL"),
        (
            ", 'bridge.sequence-by' = 'at;at'",
            "debezium",
            "'bridge.sequence-by' is not legal; legal values are",
        ),
        (
            ", 'bridge.sequence-by' = 'at', 'bridge.delete-memory' = '7'",
            "debezium",
            "'bridge.delete-memory' is not legal; legal values are intervals with a unit",
        ),
        (
            ", 'bridge.apply-as-delete' = 'at + 1'",
            "debezium",
            "'bridge.apply-as-delete':1:1: the condition is no BOOLEAN",
        ),
        (
            ", 'bridge.ignore-null-updates' = 'x'",
            "debezium",
            "'bridge.ignore-null-updates': 'x' is none of the columns that may keep a value: v, at",
        ),
        (
            ", 'bridge.ignore-null-updates' = 'true', 'bridge.sequence-by' = 'at'",
            "debezium",
            "'bridge.ignore-null-updates' cannot be combined with 'bridge.sequence-by'",
        ),
        (
            ", 'bridge.delete-memory' = '7 d'",
            "debezium",
            "'bridge.delete-memory' has no effect without 'bridge.sequence-by'",
        ),
        (
            ", 'bridge.history' = 'scd2', 'bridge.sequence-by' = 'at'",
            "debezium",
            "'bridge.history' is refused, because the queries of a script read a topic as one row for each PRIMARY",
        ),
        (
            ", 'bridge.first-row' = 'yes'",
            "debezium",
            "'bridge.first-row' = 'yes' is not legal; legal values are true, false",
        ),
        (
            ", 'bridge.first-row' = 'true', 'bridge.sequence-by' = 'at'",
            "debezium",
            "'bridge.first-row' cannot be combined with 'bridge.sequence-by', which would have no effect",
        ),
        (
            ", 'bridge.update-columns' = 'v'",
            "debezium",
            "'bridge.update-columns': 'v' is no physical column ARRAY<STRING> of the DDL",
        ),
        (
            ", 'bridge.aggregate' = 'at'",
            "debezium",
            "'bridge.aggregate': 'at' is no column with a rule, as in total: sum; low: min",
        ),
        (
            ", 'bridge.aggregate' = 'at: sum'",
            "debezium",
            "'bridge.aggregate': 'at': an update of debezium-json",
        ),
        (
            ", 'bridge.truncate' = 'x'",
            "debezium",
            "'bridge.truncate' = 'x' is not legal; legal values are apply, refuse, ignore",
        ),
        (
            ", 'bridge.truncate' = 'apply', 'bridge.sequence-by' = 'at'",
            "debezium",
            "'bridge.truncate': a truncate of format 'debezium-json' has no row, so no 'at' by which",
        ),
        (
            ", 'bridge.soft-delete' = 'd'",
            "debezium",
            "'bridge.soft-delete' has no effect in a script, whose INSERTs do not see deleted rows",
        ),
        (
            ", 'bridge.sequence-by' = 'at'",
            "delta",
            "'bridge.sequence-by' is about the records of a topic; remove it from 'delta'",
        ),
    ],
)
def test_options_that_are_refused(options: str, connector: str, message: str) -> None:
    assert message in script_refusal(script(options, connector))

"""A version can be sent directly when compact.net gives its changes without -U, row for row."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge import compact
from bridge.columns import KIND
from bridge.delta import change_feed
from bridge.delta.direct_changes import can_send_directly
from bridge.delta.table import Table
from tests.delta.tables import append, made

ROWS = [(1, "a"), (2, "b"), (3, None), (None, "n")]
MERGE = (
    "MERGE INTO {t} t USING (SELECT * FROM VALUES {rows} AS x(id, v)) AS s ON t.id <=> s.id "
    "WHEN MATCHED AND s.v = 'gone' THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"
)


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Table:
    """Version 1 has the rows."""
    return made(spark, tmp_path / "t", rows=ROWS)


@pytest.mark.parametrize(
    ("statement", "direct"),
    [
        pytest.param("INSERT INTO {t} VALUES (7, 'x'), (8, 'x')", True, id="inserts"),
        pytest.param("DELETE FROM {t} WHERE id > 1", True, id="deletes"),
        pytest.param("UPDATE {t} SET v = concat('x', id) WHERE id IS NOT NULL", True, id="updates"),
        pytest.param("UPDATE {t} SET v = NULL WHERE id = 1 OR id IS NULL", True, id="a key that is null"),
        pytest.param(MERGE.format(t="{t}", rows="(1, 'gone'), (2, 'x'), (9, 'y')"), True, id="all of them"),
        pytest.param(MERGE.format(t="{t}", rows="(1, 'x'), (2, 'b')"), False, id="one is idle"),
        pytest.param("UPDATE {t} SET v = NULL WHERE id >= 2", False, id="null is idle"),
        pytest.param("UPDATE {t} SET id = 20 WHERE id = 2", False, id="a key moves"),
        pytest.param("UPDATE {t} SET id = 3 - id WHERE id < 3", True, id="keys change places"),
        pytest.param("UPDATE {t} SET id = id + 1 WHERE id < 3", False, id="keys move up"),
        pytest.param("INSERT INTO {t} VALUES (7, 'x'), (7, 'y')", False, id="a key twice"),
        pytest.param("INSERT OVERWRITE {t} VALUES (2, 'c')", False, id="deleted and inserted again"),
    ],
)
def test_direct_changes_are_the_net_changes(
    spark: SparkSession, table: Table, statement: str, direct: bool
) -> None:
    spark.sql(statement.format(t=f"delta.`{table.target.path}`"))
    assert can_send_directly(table, 2, ["id"]) is direct
    if direct:
        changes = change_feed.changes(table, 2, 2)
        net = compact.upserts(compact.net(changes, ["id"], across_versions=False))
        sent = change_feed.changes(table, 2, 2, before_images=False).select(net.columns)
        assert sorted(map(str, sent.collect())) == sorted(map(str, net.collect()))
        assert sent.select(KIND).count() > 0


def test_rows_that_share_a_key_are_not_direct(spark: SparkSession, table: Table) -> None:
    append(table, [(1, "twin")])
    spark.sql(f"UPDATE delta.`{table.target.path}` SET v = concat(v, 'x') WHERE id = 1")
    assert not can_send_directly(table, 3, ["id"])
    spark.sql(f"DELETE FROM delta.`{table.target.path}` WHERE id = 1")
    assert not can_send_directly(table, 4, ["id"])


def test_a_key_of_several_columns(spark: SparkSession, table: Table) -> None:
    """One of them is null, once the first and once the second: two keys."""
    spark.sql(f"INSERT INTO delta.`{table.target.path}` VALUES (NULL, 'x'), (5, NULL), (5, 'x')")
    assert can_send_directly(table, 2, ["id", "v"])
    assert not can_send_directly(table, 2, ["id"])

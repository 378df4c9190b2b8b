"""Tables that others have partitioned: a row that a partition column does not hold is a bad record in every reader."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from bridge.errors import BadRecordError
from bridge.pipelines.compare.verify import verify
from bridge.pipelines.ingest.replay import replay
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.resync.topic_to_table import resync
from tests.delta.tables import create_fed
from tests.pipelines.world import Make, Record, World

COLUMNS = "id BIGINT, name STRING, amount DECIMAL(10, 2), PRIMARY KEY (id, name) NOT ENFORCED"
REASON = (
    "column 'name' is a partition column of the table, where Delta takes an empty STRING for NULL; send another value, "
    "or let the table have no partitions (CLUSTER BY keeps every value)"
)
ASIDE = "ingest: {bad-records: quarantine}\n"


def record(id: int, name: str | None, amount: str | None = "1.00") -> Record:
    shown = "null" if name is None else f'"{name}"'
    key = f'{{"id":{id},"name":{shown}}}'
    return key, None if amount is None else f'{{"id":{id},"name":{shown},"amount":{amount}}}'


@pytest.fixture
def world(make: Make, lake: Path) -> World:
    made = make(partitions=1, columns=COLUMNS)
    columns = "id BIGINT, name STRING, amount DECIMAL(10, 2)"
    create_fed(made.spark, f"{lake}/table", columns, "PARTITIONED BY (name)")
    return made


def test_an_empty_text_in_a_partition_column_is_a_bad_record(world: World) -> None:
    spark = world.spark
    world.send([record(1, "é"), record(1, None), record(2, "日本")])
    assert ingest(spark, world.definition()).records_in == 3
    world.send([record(1, ""), record(2, "日本", None), record(1, None, "2.00"), record(3, "", None)])
    # The consumer hands the batch over to Spark's reader, which names the record.
    with pytest.raises(BadRecordError) as caught:
        ingest(spark, world.definition())
    assert str(caught.value).startswith(
        f"{world.topic}-0 at offset 3, row (id: 1, name: ): {REASON}. Nothing of this batch was written."
    )
    world.sections = ASIDE
    definition = world.definition()
    summary = ingest(spark, definition)
    assert summary.bad_records == 1
    expected = [(1, "é", Decimal("1.00")), (1, None, Decimal("2.00"))]
    assert world.rows() == expected
    assert verify(spark, definition).equal
    quarantined = (
        spark.read.format("delta").load(f"{world.folder}/table_quarantine").select("offset", "reason")
    )
    assert [tuple(row) for row in quarantined.collect()] == [(3, REASON)]
    assert resync(spark, definition).updated == 0
    assert (replay(spark, definition).replayed, world.rows()) == (0, expected)

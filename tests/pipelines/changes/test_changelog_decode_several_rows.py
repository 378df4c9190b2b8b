"""Documents of an upsert topic with several rows, of which the last one counts, unless all of them would."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from bridge.columns import BAD, KIND
from bridge.pipelines.changes.changelog_decode import decode
from tests.config.files import HEAD, loaded
from tests.decode.records import AT, RECORD

FILE = """\
topic:
  ddl: |
    CREATE TABLE t (id BIGINT, name STRING, n BIGINT, cols ARRAY<STRING>, PRIMARY KEY (id) NOT ENFORCED) WITH (
      'connector' = 'upsert-kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'x:1',
      'key.format' = 'json', 'value.format' = 'json')
"""


@pytest.mark.parametrize(
    ("delta", "named"),
    [
        ("", None),
        ("apply-as-delete: 'n = 1'", None),
        ("soft-delete: gone", None),
        ("sequence-by: n", "sequence-by"),
        ("sequence-by: n, history: scd2", "history"),
        ("first-row: true", "first-row"),
        ("ignore-null-updates: true", "ignore-null-updates"),
        ("update-columns: cols", "update-columns"),
        ("truncate: apply, apply-as-truncate: 'n = 1'", "apply-as-truncate"),
    ],
)
def test_a_document_of_several_rows_is_bad_where_each_would_count(
    delta: str, named: str | None, spark: SparkSession, tmp_path: Path
) -> None:
    place = ", ".join(filter(None, ("path: table", delta)))
    definition = loaded(tmp_path, f"{HEAD}{FILE}delta: {{{place}}}\nrun: {{checkpoint: c}}\n")
    documents = ('[{"n": 1, "name": "a"}, {"n": 2, "name": "b"}]', '[{"n": 3, "name": "c"}]')
    rest = {"topic": "t", "partition": 0, "timestamp": AT, "timestampType": 0}
    rows = [
        {"key": b'{"id": %d}' % at, "value": text.encode(), "offset": at, **rest}
        for at, text in enumerate(documents)
    ]
    changes = decode(spark.createDataFrame(pa.Table.from_pylist(rows, schema=RECORD)), definition)
    found = {row["id"]: (row[KIND], row["name"], row[BAD]) for row in changes.collect()}
    reason = (
        f"value: the document has several rows, and delta.{named} counts each of them; send a record for each"
    )
    assert found == {0: ("+U", "b", None) if named is None else (None, None, reason), 1: ("+U", "c", None)}

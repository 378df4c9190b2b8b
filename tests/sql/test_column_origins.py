"""The columns of sources from which the columns of a result come."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.sql import load_script
from bridge.sql.column_origins import column_origins

TABLES = """
CREATE TABLE v (id BIGINT, page STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
  WITH ('connector' = 'kafka', 'properties.bootstrap.servers' = 'b:1', 'topic' = 'v', 'format' = 'json');
CREATE TABLE c (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'delta', 'path' = 'c');
"""


@pytest.mark.parametrize(
    ("columns", "query", "wanted"),
    [
        (
            "a BIGINT, b STRING",
            "SELECT id, 'x' FROM v",
            {"a": [("v", "id", "IDENTITY")]},
        ),
        (
            "a BIGINT, b STRING, PRIMARY KEY (a) NOT ENFORCED",
            "SELECT c.id, MAX(v.page || c.name) FROM c JOIN v ON v.id = c.id WHERE v.ts IS NOT NULL GROUP BY c.id",
            {
                "a": [("c", "id", "IDENTITY")],
                "b": [("c", "name", "AGGREGATION"), ("v", "page", "AGGREGATION")],
            },
        ),
        (
            "a BIGINT, b STRING",
            "SELECT id, page FROM v UNION ALL SELECT id + 1, page FROM v",
            {"a": [("v", "id", "TRANSFORMATION")], "b": [("v", "page", "IDENTITY")]},
        ),
        (
            "a TIMESTAMP(3), b BIGINT, PRIMARY KEY (a) NOT ENFORCED",
            "SELECT window_start, COUNT(*) FROM TABLE(TUMBLE(TABLE v, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) "
            "GROUP BY window_start, window_end",
            {"a": [("v", "ts", "TRANSFORMATION")]},
        ),
        (
            "a BIGINT, b STRING, PRIMARY KEY (a) NOT ENFORCED",
            "SELECT id, page FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY ts DESC) AS n FROM v) "
            "WHERE n = 1",
            {"a": [("v", "id", "IDENTITY")], "b": [("v", "page", "IDENTITY")]},
        ),
    ],
)
def test_origins(
    tmp_path: Path, columns: str, query: str, wanted: dict[str, list[tuple[str, str, str]]]
) -> None:
    sink = f"CREATE TABLE s ({columns}) WITH ('connector' = 'delta', 'path' = 's');"
    script = load_script(tmp_path / "s.sql", text=f"{TABLES}{sink}\nINSERT INTO s {query};")
    found = column_origins(script.inserts[0])
    assert {name: sorted(origins) for name, origins in found.items()} == wanted

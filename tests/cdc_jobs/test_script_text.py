"""CREATE TABLEs of topics; errors have their place in the file that has the statement."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cdc_jobs.jobs import KAFKA, SINK, load, refusal

HEAD = KAFKA[: KAFKA.index("  ddl")]


def test_a_file_of_statements(tmp_path: Path) -> None:
    statement = "CREATE TABLE orders (\n  id BIGINT,\n  at TIMESTAMP(3) METADATA FROM 'timestamp' VIRTUAL,\n"
    (tmp_path / "tables.sql").write_text(statement + "  PRIMARY KEY (id) NOT ENFORCED);\n-- the end\n")
    job = load(tmp_path, HEAD + "  ddl_file: tables.sql\n" + SINK)
    assert job.script is not None
    assert [c.name for c in job.script.inserts[0].columns] == ["id", "at"]
    (tmp_path / "tables.sql").write_text(
        statement.replace("BIGINT", "BIGIN") + "  PRIMARY KEY (id) NOT ENFORCED)"
    )
    assert refusal(tmp_path, HEAD + "  ddl_file: tables.sql\n" + SINK).startswith("tables.sql:2:6: ")


@pytest.mark.parametrize(
    ("ddl", "message"),
    [
        (
            "",
            "job.yaml:2: source: exactly one of ddl and ddl_file must be set: CREATE TABLE name (columns, PRIMARY KEY",
        ),
        (
            "  ddl: CREATE TABLE t (id INT)\n  ddl_file: t.sql\n",
            "exactly one of ddl and ddl_file must be set",
        ),
        (
            "  ddl_file: none.sql\n",
            "source.ddl_file: the file none.sql cannot be read: No such file or directory",
        ),
        ("  ddl: ';'\n", "job.yaml:6: source.ddl: there is no CREATE TABLE"),
        ("  ddl: SELECT 1\n", "job.yaml:6:8: expected CREATE TABLE, found 'SELECT'"),
        ("  ddl: CREATE TABLE t (id INT) x\n", "job.yaml:6:32: expected"),
        (
            "  ddl: CREATE TABLE t (id INT) WITH ('topic' = 't', 'connector' = 'kafka')\n",
            "job.yaml:6:32: 'connector': WITH of a table has its 'topic' only; write the other options into the",
        ),
    ],
)
def test_what_is_refused(tmp_path: Path, ddl: str, message: str) -> None:
    assert message in refusal(tmp_path, HEAD + ddl + SINK)

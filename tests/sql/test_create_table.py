"""CREATE TABLE ... LIKE and columns AS PROCTIME()."""

from __future__ import annotations

import pytest

from bridge.sql.connectors import Table
from tests.sql.scripts import KAFKA, SOURCES, load, script_refusal, sink

BASE = (
    "CREATE TABLE base (id BIGINT, kind ROW<a INT, b MAP<STRING, INT>>, ts TIMESTAMP(3) METADATA FROM 'timestamp', "
    "twice AS id * 2, large AS id > 3, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) "
    f"COMMENT 'of base' WITH ('connector' = 'kafka', 'topic' = 'b', {KAFKA}, 'format' = 'json');\n"
)


def like(text: str) -> Table:
    return load(f"{BASE}{text};\n").tables[-1]


def test_all_of_the_other_table_but_for_options_of_its_own() -> None:
    table = like("CREATE TABLE t (name STRING) WITH ('topic' = 't') LIKE base")
    schema = table.ddl.schema
    assert schema.names == ("id", "kind", "ts", "twice", "large", "name")
    assert schema.watermark is not None and schema.watermark.column == "ts"
    assert table.topic is not None and (table.topic.names, table.topic.value.name) == (("t",), "json")
    assert table.ddl.comment == "of base"


def test_without_columns_and_options() -> None:
    assert like("CREATE TABLE t LIKE base").ddl.options == load(BASE).tables[0].ddl.options


def test_a_table_that_is_like_another_one_may_be_the_other_one() -> None:
    table = load(f"{BASE}CREATE TABLE t (a INT) LIKE base;\nCREATE TABLE u (b INT) LIKE t;\n").tables[-1]
    assert table.ddl.schema.names[-2:] == ("a", "b")


@pytest.mark.parametrize(
    ("list_", "names", "has_watermark"),
    [
        ("(EXCLUDING WATERMARKS)", ("id", "kind", "ts", "twice", "large"), False),
        ("(EXCLUDING GENERATED)", ("id", "kind", "ts"), True),
        ("(EXCLUDING METADATA EXCLUDING WATERMARKS)", ("id", "kind", "twice", "large"), False),
        ("(INCLUDING ALL EXCLUDING GENERATED)", ("id", "kind", "ts"), True),
    ],
)
def test_what_is_taken_over(list_: str, names: tuple[str, ...], has_watermark: bool) -> None:
    own = "'topic' = 't'" if "ALL" not in list_ else "'scan.parallelism' = '2'"
    schema = like(f"CREATE TABLE t WITH ({own}) LIKE base {list_}").ddl.schema
    assert schema.names == names and (schema.watermark is not None) is has_watermark


def test_all_excluded_leaves_the_columns() -> None:
    options = f"'connector' = 'kafka', 'topic' = 't', {KAFKA}, 'format' = 'avro'"
    table = like(f"CREATE TABLE t WITH ({options}) LIKE base (EXCLUDING ALL)")
    assert table.ddl.schema.names == ("id", "kind") and table.ddl.options["format"] == "avro"


def test_a_watermark_that_overwrites() -> None:
    text = "CREATE TABLE t (WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) LIKE base (OVERWRITING WATERMARKS)"
    watermark = like(text).ddl.schema.watermark
    assert watermark is not None and watermark != load(BASE).tables[0].ddl.schema.watermark


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CREATE TABLE t LIKE bass", "2:21: there is no table `bass` to be LIKE; did you mean `base`?"),
        (
            "CREATE TABLE t LIKE base (TAKING ALL)",
            "2:27: expected INCLUDING, EXCLUDING or OVERWRITING and one of",
        ),
        ("CREATE TABLE t LIKE base (OVERWRITING ALL)", "2:27: OVERWRITING ALL is not possible"),
        ("CREATE TABLE t LIKE base WITH", "2:26: expected ';' or a list of INCLUDING and EXCLUDING"),
        (
            "CREATE TABLE t WITH ('topic' = 't') LIKE base (INCLUDING OPTIONS)",
            "2:42: INCLUDING OPTIONS takes 'topic' from `base`, and this table sets it, too; remove one",
        ),
        ("CREATE TABLE t (id INT) LIKE base", "column `id`"),
    ],
)
def test_refused(text: str, message: str) -> None:
    assert message in script_refusal(f"{BASE}{text};\n")


def test_a_proctime_column_is_left_out_with_a_warning() -> None:
    script = load(f"{SOURCES.replace('ok BOOLEAN', 'ok BOOLEAN, p AS PROCTIME()')}")
    assert "p" not in script.tables[0].ddl.schema.names
    assert script.warnings == (
        "table views: column 'p' AS PROCTIME() is left out: a row may be computed again, so it has no time of "
        "processing",
    )


def test_a_query_that_uses_it_is_refused() -> None:
    text = SOURCES.replace("ok BOOLEAN", "ok BOOLEAN, p AS PROCTIME()")
    text += f"{sink('a TIMESTAMP(3)', connector='kafka')}INSERT INTO s\nSELECT p FROM views;\n"
    assert script_refusal(text).startswith(
        "t.sql:6:8: `p` of `views`, a column AS PROCTIME() is not supported in this version"
    )

"""`delta.aggregate` in a pipeline file: which rules a column may have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bridge.definition import DeltaTarget
from bridge.errors import DefinitionError
from bridge.schema import ColumnRule
from tests.config.files import WHOLE, loaded

DDL = "id BIGINT, note STRING,"
WIDER = "id BIGINT, note STRING, n INT, d DOUBLE, tags ARRAY<STRING>, maps MAP<STRING, INT>,"
CDC = (
    "'connector' = 'kafka', 'scan.startup.mode' = 'earliest-offset', 'format' = 'debezium-json', 'topic' = 't', "
    "'properties.bootstrap.servers' = 'b:9092'"
)


def target(
    tmp_path: Path, rules: str, more: str = "", columns: str = WIDER, sections: str = ""
) -> DeltaTarget:
    keys = f"delta: {{aggregate: {{{rules}}}, {more}"
    return loaded(tmp_path, WHOLE.replace(DDL, columns).replace("delta: {", keys) + sections).delta


def test_columns_have_rules_in_the_order_of_the_ddl(tmp_path: Path) -> None:
    found = target(tmp_path, "tags: collect-set, d: min, n: sum, note: last, maps: first")
    assert found.aggregate == {
        "n": ColumnRule.SUM,
        "d": ColumnRule.MIN,
        "tags": ColumnRule.COLLECT_SET,
        "maps": ColumnRule.FIRST,
    }
    assert found.change_semantics == {"aggregate": "n: sum, d: min, tags: collect-set, maps: first"}
    assert found.needs_all_records == {"aggregate"}
    assert target(tmp_path, "note: last").change_semantics == {}
    kept = target(tmp_path, "n: min", "ignore-null-updates: [note], ")
    assert (kept.ignore_nulls, list(kept.aggregate)) == (("note",), ["n"])


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("id: max", "'id' is none of the columns that may have a rule: note, n, d, tags, maps"),
        ("n: average", "'n' has the rule 'average'; legal are last, first, min, max, sum, collect-set"),
        ("d: sum", "'d' has the type DOUBLE, and sum needs TINYINT, SMALLINT, INT, BIGINT, DECIMAL"),
        ("note: sum", "'note' has the type STRING, and sum needs"),
        ("tags: max", "'tags' has the type ARRAY<STRING>, and max needs"),
        ("note: collect-set", "'note' has the type STRING, and collect-set needs ARRAY of TINYINT, "),
    ],
)
def test_rules_without_a_meaning(tmp_path: Path, rules: str, message: str) -> None:
    with pytest.raises(DefinitionError, match=re.escape(f"delta.aggregate: {message}")):
        target(tmp_path, rules)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("sequence-by: d2, ", "delta.aggregate cannot be combined with delta.sequence-by"),
        ("first-row: true, ", "delta.aggregate cannot be combined with delta.first-row"),
        ("update-columns: tags, ", "delta.aggregate cannot be combined with delta.update-columns"),
        ("soft-delete: gone, ", "delta.aggregate cannot be combined with delta.soft-delete"),
        ("merge-columns: all, ", "aggregate cannot be combined with merge-columns"),
        ("history: append, ", "aggregate cannot be combined with history: append"),
        ("ignore-null-updates: [n], ", "delta.ignore-null-updates: 'n' has a rule of delta.aggregate"),
    ],
)
def test_other_keys_beside_it(tmp_path: Path, more: str, message: str) -> None:
    with pytest.raises(DefinitionError, match=re.escape(message)):
        target(tmp_path, "n: sum", more, WIDER.replace("d DOUBLE", "d2 BIGINT"))


def test_columns_that_it_cannot_keep_right(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="column 'twice' is computed of what a record has"):
        target(tmp_path, "n: sum", columns=f"{WIDER} twice AS n * 2,")
    gate = "quality: {suite: suite.json, gate: warn}\n"
    (tmp_path / "suite.json").write_text('{"name": "s", "expectations": []}')
    with pytest.raises(DefinitionError, match=r"quality\.gate cannot be combined with delta\.aggregate"):
        target(tmp_path, "n: sum", sections=gate)


def test_an_update_of_a_cdc_format_is_no_addition(tmp_path: Path) -> None:
    text = WHOLE.replace(DDL, WIDER).replace("delta: {", "delta: {aggregate: {n: RULE}, ")
    text = re.sub(r"'connector'.*?(?=\n *\))", CDC, text, flags=re.DOTALL)
    assert loaded(tmp_path, text.replace("RULE", "max")).delta.aggregate == {"n": ColumnRule.MAX}
    with pytest.raises(DefinitionError, match="an update of debezium-json has the whole value of its row"):
        loaded(tmp_path, text.replace("RULE", "sum"))

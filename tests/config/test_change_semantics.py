"""`delta.sequence-by` and the other keys of `delta` about changes in a pipeline file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bridge.definition import Definition, DeltaTarget, Truncate
from bridge.errors import DefinitionError
from bridge.history_columns import AppendHistory, History
from tests.config.files import WHOLE, loaded

DDL = "id BIGINT, note STRING,"
WIDER = (
    "id BIGINT, note STRING, version INT, price DOUBLE, twice AS version * 2, "
    "at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL,"
)


def ordered(tmp_path: Path, columns: str, more: str = "") -> tuple[tuple[str, ...], float]:
    text = WHOLE.replace(DDL, WIDER).replace("delta: {", f"delta: {{sequence-by: {columns}, {more}")
    delta = loaded(tmp_path, text).delta
    return delta.sequence_by, delta.delete_memory_seconds


def test_without_it_records_are_ordered_by_their_position(tmp_path: Path) -> None:
    assert ordered(tmp_path, "position") == ((), 604_800.0)


def test_a_column_or_several_in_their_order(tmp_path: Path) -> None:
    assert ordered(tmp_path, "at", "delete-memory: 36 h, ") == (("at",), 129_600.0)
    assert ordered(tmp_path, "[version, at]")[0] == ("version", "at")


def test_metadata_are_told_with_their_key(tmp_path: Path) -> None:
    """So that a column which gets another meaning is another order of the table's changes."""
    text = WHOLE.replace(DDL, WIDER).replace("delta: {", "delta: {sequence-by: [version, at], ")
    semantics = loaded(tmp_path, text).delta.change_semantics
    assert semantics == {"sequence-by": "version, at METADATA FROM 'timestamp'"}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("sum", "'sum' is not a column of the DDL; its columns are id, note, version, price, at"),
        ("[version, id]", "'id' is in the PRIMARY KEY, so all changes of a row have the same value"),
        (
            "twice",
            "'twice' is a computed column, which a deletion does not have; name a column of the record",
        ),
        ("price", "'price' has the type DOUBLE; legal are TINYINT, SMALLINT, INT, BIGINT, DECIMAL, STRING, "),
    ],
)
def test_columns_that_order_nothing(tmp_path: Path, columns: str, message: str) -> None:
    with pytest.raises(DefinitionError, match=f"delta.sequence-by: {re.escape(message)}"):
        ordered(tmp_path, columns)


@pytest.mark.parametrize("columns", ["[]", "[at, at]", "3", "[3]", "''"])
def test_values_that_are_not_legal(tmp_path: Path, columns: str) -> None:
    with pytest.raises(
        DefinitionError, match="legal values are position, a column and lists of different col"
    ):
        ordered(tmp_path, columns)


@pytest.mark.parametrize(
    ("columns", "more", "message"),
    [
        ("position", "delete-memory: 1 d, ", "delete-memory has no effect with sequence-by: position"),
        ("at", "delete-memory: 0 s, ", "legal values are intervals with a unit"),
    ],
)
def test_keys_that_do_not_go_together(tmp_path: Path, columns: str, more: str, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        ordered(tmp_path, columns, more)


def test_a_ddl_without_a_key(tmp_path: Path) -> None:
    text = WHOLE.replace("note STRING,\n      PRIMARY KEY (id) NOT ENFORCED", "note STRING")
    text = text.replace("upsert-kafka", "kafka").replace("'key.format' = 'json', ", "")
    with pytest.raises(
        DefinitionError, match=r"delta.sequence-by: the DDL has no PRIMARY KEY.*or remove delta"
    ):
        loaded(tmp_path, text.replace("delta: {", "delta: {sequence-by: note, "))


def deletes(tmp_path: Path, condition: str, more: str = "") -> str:
    text = WHOLE.replace(DDL, WIDER).replace("delta: {", f'delta: {{apply-as-delete: "{condition}", {more}')
    found = loaded(tmp_path, text).delta.apply_as_delete
    assert found is not None and found.expression == condition
    return found.spark


def test_a_condition_of_deletions(tmp_path: Path) -> None:
    """In Flink SQL, over the columns of the record."""
    assert deletes(tmp_path, "note = 'd' OR version < 0") == "`note` = 'd' OR `version` < 0"


@pytest.mark.parametrize(
    ("condition", "more", "message"),
    [
        ("op = 'd'", "", "delta.apply-as-delete:1:1: .*there is no physical or metadata column `op`"),
        ("version + 1", "", "delta.apply-as-delete:1:1: the condition is no BOOLEAN; write a comparison"),
        ("note = 'd', 1", "", "delta.apply-as-delete:1:11: expected the end of the condition"),
        ("", "", "delta.apply-as-delete:1:1: expected a condition"),
    ],
)
def test_conditions_that_are_refused(tmp_path: Path, condition: str, more: str, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        deletes(tmp_path, condition, more)


def test_a_condition_without_a_key(tmp_path: Path) -> None:
    text = WHOLE.replace("note STRING,\n      PRIMARY KEY (id) NOT ENFORCED", "note STRING")
    text = text.replace("upsert-kafka", "kafka").replace("'key.format' = 'json', ", "")
    with pytest.raises(DefinitionError, match=r"delta.apply-as-delete: the DDL has no PRIMARY KEY"):
        loaded(tmp_path, text.replace("delta: {", "delta: {apply-as-delete: note = 'd', "))


PLAIN = WIDER.replace("twice AS version * 2, ", "")


def kept(tmp_path: Path, columns: str, ddl: str = PLAIN, more: str = "") -> tuple[str, ...]:
    text = WHOLE.replace(DDL, ddl).replace("delta: {", f"delta: {{ignore-null-updates: {columns}, {more}")
    return loaded(tmp_path, text).delta.ignore_nulls


def test_columns_that_keep_their_values(tmp_path: Path) -> None:
    """The physical ones outside the key, in the order of the DDL."""
    assert kept(tmp_path, "true") == ("note", "version", "price")
    assert kept(tmp_path, "[price, note]") == ("note", "price")
    assert kept(tmp_path, "false", WIDER) == ()


def test_all_columns_are_all_whatever_the_ddl_gets_later(tmp_path: Path) -> None:
    """Else another column would be another semantics, which only a resync takes over."""

    def semantics(columns: str, ddl: str) -> dict[str, str]:
        text = WHOLE.replace(DDL, ddl).replace("delta: {", f"delta: {{ignore-null-updates: {columns}, ")
        return loaded(tmp_path, text).delta.change_semantics

    more = PLAIN.replace("version", "added STRING, version", 1)
    assert semantics("true", PLAIN) == semantics("true", more) == {"ignore-null-updates": "true"}
    assert semantics("[price, note]", more) == {"ignore-null-updates": "note, price"}


@pytest.mark.parametrize(
    ("columns", "more", "message"),
    [
        (
            "[id]",
            "",
            "delta.ignore-null-updates: 'id' is none of the columns that may keep a value: note, version",
        ),
        ("[at]", "", "delta.ignore-null-updates: 'at' is none of the columns that may keep a value"),
        ("[]", "", "legal values are true, false and lists of different columns"),
        ("note", "", "legal values are true, false and lists of different columns"),
        (
            "true",
            "sequence-by: at, ",
            "ignore-null-updates cannot be combined with sequence-by, as a late change",
        ),
        ("true", "merge-columns: all, ", "ignore-null-updates cannot be combined with merge-columns"),
    ],
)
def test_columns_that_cannot_keep_values(tmp_path: Path, columns: str, more: str, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        kept(tmp_path, columns, more=more)


def test_computed_columns_do_not_go_with_kept_values(tmp_path: Path) -> None:
    with pytest.raises(
        DefinitionError, match="column 'twice' is computed of what a record has, not of what the row"
    ):
        kept(tmp_path, "true", WIDER)


def history(tmp_path: Path, more: str, text: str = WHOLE) -> DeltaTarget:
    """Of an upsert topic, by a column of the document."""
    return loaded(
        tmp_path, text.replace(DDL, PLAIN).replace("delta: {", f"delta: {{history: scd2, {more}")
    ).delta


def test_a_history_has_columns_beside_those_of_the_ddl(tmp_path: Path) -> None:
    found = history(tmp_path, "sequence-by: version, ")
    assert found.history == History("__valid_from", "__valid_to", "__current")
    assert found.row_key(["id"]) == ("id", "__valid_from")
    columns = "[valid_from, valid_to, __current]"
    named = history(tmp_path, f"sequence-by: version, history-columns: {columns}, ")
    assert named.history == History("valid_from", "valid_to", "__current")
    assert named.change_semantics == {
        "sequence-by": "version",
        "history": "scd2",
        "history-columns": "valid_from, valid_to, __current",
    }
    assert loaded(tmp_path, WHOLE).delta.row_key(["id"]) == ("id",)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            "",
            "delta.history: a row is valid from the value of one column .* so position, which has no order over",
        ),
        ("sequence-by: [version, at], ", "delta.history: a row is valid from the value of one column"),
        ("sequence-by: at, merge-columns: all, ", "history: scd2 cannot be combined with merge-columns"),
        (
            "sequence-by: at, ignore-null-updates: true, ",
            "ignore-null-updates cannot be combined with sequence",
        ),
        ("sequence-by: at, history-columns: [a, b], ", "legal values are lists of three different names"),
        ("sequence-by: at, history-columns: [a, b, A], ", "legal values are lists of three different names"),
        ("sequence-by: at, history-columns: [__kind, b, c], ", "do not begin with two of these"),
        (
            "sequence-by: at, history-columns: [a, Note, c], ",
            "'note' is a column of the DDL; choose another name",
        ),
    ],
)
def test_histories_that_are_refused(tmp_path: Path, more: str, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        history(tmp_path, more)


def test_a_deletion_needs_a_sequence_of_its_own(tmp_path: Path) -> None:
    """That of the row before would end the row at its start."""
    text = WHOLE.replace("upsert-kafka", "kafka").replace("'key.format' = 'json', ", "")
    cdc = "'scan.startup.mode' = 'earliest-offset', 'value.format' = 'debezium-json'"
    text = text.replace("'value.format' = 'json'", cdc)
    assert history(tmp_path, "sequence-by: at, ", text).history is not None
    with pytest.raises(
        DefinitionError, match=r"a deletion of debezium-json has the 'version' of the row that it"
    ):
        history(tmp_path, "sequence-by: version, ", text)


def test_a_history_of_all_changes_is_a_table_without_a_key(tmp_path: Path) -> None:
    def of(more: str = "") -> Definition:
        return loaded(tmp_path, WHOLE.replace("delta: {", f"delta: {{history: append, {more}"))

    found = of()
    assert found.delta.append_history == AppendHistory() and found.delta.history is None
    assert (found.topic.schema.primary_key, found.topic.identity) == ((), ("id",))
    assert found.topic.schema.names == ("id", "note", *AppendHistory().columns)
    assert found.row_key == ("__change_topic", "__change_partition", "__change_offset", "__change_row")
    assert not found.compacts_first
    named = of("history-columns: [kind, name, part, pos, __change_row], ")
    assert named.topic.schema.names[2:] == ("kind", "name", "part", "pos", "__change_row")
    assert named.delta.change_semantics == {
        "history": "append",
        "history-columns": "kind, name, part, pos, __change_row",
    }


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("sequence-by: note", "sequence-by cannot be combined with history: append, which makes each change"),
        ("merge-columns: all", "merge-columns cannot be combined with history: append"),
        ("apply-as-delete: note = 'd'", "apply-as-delete cannot be combined with history: append"),
        ("soft-delete: gone", "soft-delete cannot be combined with history: append"),
        ("truncate: apply", "truncate: apply cannot be combined with history: append"),
        ("first-row: true", "first-row cannot be combined with history: append"),
        (
            "history-columns: [a, b, c]",
            "history-columns is not legal; legal values are lists of five different",
        ),
        ("history-columns: [a, b, c, Note, e]", "'note' is a column of the DDL; choose another name"),
    ],
)
def test_what_no_change_does_to_a_row(tmp_path: Path, more: str, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        loaded(tmp_path, WHOLE.replace("delta: {", f"delta: {{history: append, {more}, "))


def test_columns_of_no_history(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="history-columns has no effect without history"):
        loaded(tmp_path, WHOLE.replace("delta: {", "delta: {history-columns: [a, b, c], "))
    with pytest.raises(DefinitionError, match="history"):
        loaded(tmp_path, WHOLE.replace("delta: {", "delta: {history: tritemporal, "))


def test_the_columns_of_a_bitemporal_history(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match=r"set delta\.sequence-by to a column"):
        loaded(tmp_path, WHOLE.replace("delta: {", "delta: {history: bitemporal, "))
    ordered = WHOLE.replace("delta: {", "delta: {history: bitemporal, sequence-by: note, ")
    with pytest.raises(DefinitionError, match="history: bitemporal cannot be combined with merge-columns"):
        loaded(tmp_path, ordered.replace("delta: {", "delta: {merge-columns: all, "))
    found = loaded(tmp_path, ordered)
    assert found.delta.change_semantics["history"] == "bitemporal"
    assert found.row_key == ("id", "__valid_from", "__system_from")
    with pytest.raises(DefinitionError, match=r"lists of five different names, like \[valid_from, valid_to"):
        loaded(tmp_path, ordered.replace("delta: {", "delta: {history-columns: [a, b, c], "))
    named = loaded(tmp_path, ordered.replace("delta: {", "delta: {history-columns: [a, b, c, d, e], "))
    assert named.delta.history == History("a", "b", "c", "d", "e")
    assert named.delta.change_semantics["history-columns"] == "a, b, c, d, e"


def test_current_rows_are_those_of_another_pipeline(tmp_path: Path) -> None:
    text = f"{WHOLE}publish: {{history: current}}\n"
    assert loaded(tmp_path, text).publish.current_rows
    with pytest.raises(
        DefinitionError, match=r"publish.history: current is of a pipeline .* delta.history is not"
    ):
        loaded(tmp_path, text.replace("delta: {", "delta: {history: scd2, sequence-by: note, "))
    keyless = text.replace("note STRING,\n      PRIMARY KEY (id) NOT ENFORCED", "note STRING")
    keyless = keyless.replace("upsert-kafka", "kafka").replace("'key.format' = 'json', ", "")
    with pytest.raises(DefinitionError, match=r"publish.history: current requires a PRIMARY KEY"):
        loaded(tmp_path, keyless)


def marked(tmp_path: Path, column: str, more: str = "") -> str | None:
    text = WHOLE.replace(DDL, WIDER).replace("delta: {", f"delta: {{soft-delete: {column}, {more}")
    return loaded(tmp_path, text).delta.soft_delete


def test_a_column_of_deletions(tmp_path: Path) -> None:
    assert marked(tmp_path, "deleted_at") == "deleted_at"
    assert marked(tmp_path, "null") is None


@pytest.mark.parametrize(
    ("column", "more", "message"),
    [
        (
            "NOTE",
            "",
            "delta.soft-delete: 'NOTE' is a column of the DDL, and the bridge adds that of the deletion",
        ),
        ("''", "", "soft-delete"),
        ("__kind", "", "delta.soft-delete: '__kind': names that start with two underscores are reserved"),
        (
            "d",
            "sequence-by: at, ",
            "soft-delete cannot be combined with sequence-by, as a late change may have",
        ),
        ("d", "merge-columns: all, ", "soft-delete cannot be combined with merge-columns"),
    ],
)
def test_columns_of_deletions_that_are_refused(tmp_path: Path, column: str, more: str, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        marked(tmp_path, column, more)


def test_a_column_of_deletions_without_a_key(tmp_path: Path) -> None:
    text = WHOLE.replace("note STRING,\n      PRIMARY KEY (id) NOT ENFORCED", "note STRING")
    text = text.replace("upsert-kafka", "kafka").replace("'key.format' = 'json', ", "")
    with pytest.raises(DefinitionError, match=r"delta.soft-delete: the DDL has no PRIMARY KEY"):
        loaded(tmp_path, text.replace("delta: {", "delta: {soft-delete: d, "))


CDC = WHOLE.replace("upsert-kafka", "kafka").replace("'key.format' = 'json', ", "")
CDC = CDC.replace("'value.format' = 'json'", "'value.format' = 'debezium-json'")


def truncates(tmp_path: Path, delta: str, text: str = CDC) -> DeltaTarget:
    return loaded(tmp_path, text.replace(DDL, PLAIN).replace("delta: {", f"delta: {{{delta}, ")).delta


def test_what_a_truncate_does(tmp_path: Path) -> None:
    assert truncates(tmp_path, "merge-schema: false").truncate is Truncate.REFUSE
    assert truncates(tmp_path, "truncate: ignore").change_semantics == {"truncate": "ignore"}
    found = truncates(tmp_path, "truncate: apply, apply-as-truncate: \"note = 't'\"", WHOLE)
    assert found.change_semantics == {"truncate": "apply", "apply-as-truncate": "note = 't'"}
    assert truncates(tmp_path, "apply-as-truncate: \"note = 't'\"", WHOLE).truncate is Truncate.REFUSE


@pytest.mark.parametrize(
    ("delta", "text", "message"),
    [
        ("truncate: later", CDC, "truncate.*'apply', 'refuse' or 'ignore'"),
        (
            "truncate: apply",
            WHOLE,
            "delta.truncate: apply has no effect, as no record of format 'json' is a truncate",
        ),
        (
            "truncate: ignore",
            CDC.replace("debezium", "maxwell"),
            "no record of format 'maxwell-json' is a truncate",
        ),
        (
            "truncate: apply, sequence-by: version",
            CDC,
            "a truncate of format 'debezium-json' has no row, so no 'version' by which delta.sequence-by orders it",
        ),
        (
            "truncate: apply, apply-as-truncate: note = 't', sequence-by: at, history: scd2",
            CDC,
            "cannot be combined with delta.history, which keeps the rows",
        ),
        (
            "truncate: apply, soft-delete: d",
            CDC,
            "cannot be combined with delta.soft-delete, which keeps deleted rows",
        ),
        ("truncate: apply, merge-columns: all", CDC, "truncate: apply cannot be combined with merge-columns"),
        (
            "apply-as-truncate: note = 't', merge-columns: all",
            CDC,
            "apply-as-truncate cannot be combined with merge-c",
        ),
        ("apply-as-truncate: version + 1", CDC, "delta.apply-as-truncate:1:1: the condition is no BOOLEAN"),
        (
            "truncate: apply",
            CDC.replace("'orders'", "'a;b'"),
            "delta.truncate: the table has rows of several topics",
        ),
        (
            "truncate: apply",
            CDC.replace("note STRING,\n      PRIMARY KEY (id) NOT ENFORCED", "note STRING"),
            "delta.truncate: the DDL has no PRIMARY KEY, so only rows are added; set delta.truncate to refuse or",
        ),
    ],
)
def test_truncates_that_are_refused(tmp_path: Path, delta: str, text: str, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        truncates(tmp_path, delta, text)


@pytest.mark.parametrize(
    ("delta", "message"),
    [
        (
            "first-row: true, sequence-by: version",
            "delta.first-row cannot be combined with delta.sequence-by",
        ),
        (
            "first-row: true, ignore-null-updates: true",
            "delta.first-row cannot be combined with delta.ignore-null",
        ),
        (
            "ignore-delete: true, soft-delete: d",
            "delta.ignore-delete cannot be combined with delta.soft-delete",
        ),
        ("first-row: true, merge-columns: all", "first-row cannot be combined with merge-columns"),
        ("first-row: perhaps", "first-row"),
    ],
)
def test_first_rows_that_are_refused(tmp_path: Path, delta: str, message: str) -> None:
    found = truncates(tmp_path, "first-row: true, ignore-delete: true")
    assert found.change_semantics == {"first-row": "true", "ignore-delete": "true"}
    with pytest.raises(DefinitionError, match=message):
        truncates(tmp_path, delta)


@pytest.mark.parametrize(
    ("delta", "ddl", "message"),
    [
        (
            "update-columns: note",
            PLAIN,
            "delta.update-columns: 'note' is no physical column ARRAY<STRING> of the DDL",
        ),
        ("update-columns: x", PLAIN, "delta.update-columns: 'x' is no physical column ARRAY<STRING>"),
        (
            "update-columns: c, sequence-by: at",
            PLAIN,
            "update-columns cannot be combined with sequence-by, as a late",
        ),
        (
            "update-columns: c, first-row: true",
            PLAIN,
            "first-row cannot be combined with delta.update-columns",
        ),
        (
            "update-columns: c, merge-columns: all",
            PLAIN,
            "update-columns cannot be combined with merge-columns",
        ),
        (
            "update-columns: c, ignore-null-updates: [note, c]",
            PLAIN,
            "delta.ignore-null-updates: 'c' is the column of delta.update-columns, which each record sets",
        ),
        ("update-columns: c", WIDER, "delta.update-columns: column 'twice' is computed of what a record has"),
    ],
)
def test_columns_that_name_none(tmp_path: Path, delta: str, ddl: str, message: str) -> None:
    named = WHOLE.replace(DDL, PLAIN + " c ARRAY<STRING>,").replace("delta: {", "delta: {update-columns: c, ")
    assert loaded(tmp_path, named).kept_columns == ("note", "version", "price")
    text = WHOLE.replace(DDL, ddl + " c ARRAY<STRING>,").replace("delta: {", f"delta: {{{delta}, ")
    with pytest.raises(DefinitionError, match=message):
        loaded(tmp_path, text)

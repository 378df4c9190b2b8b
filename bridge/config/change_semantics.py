"""Resolves what `delta` says about changes: the columns of `sequence-by`, which order those of a key, those of
`history`, the condition of `apply-as-delete` or `apply-as-truncate`, the columns of `ignore-null-updates`, and that of
`soft-delete`; and the topic of a table that has all changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bridge.ddl import condition
from bridge.definition import DeltaTarget, Topic, Truncate
from bridge.errors import OptionError
from bridge.history_columns import AppendHistory, History
from bridge.options import FORMATS, ROW_KIND, ROW_NUMBER
from bridge.schema import ArrayType, ColumnRule, ComputedColumn, MetadataColumn, PhysicalColumn, ScalarType

LAST = "last"
"""The value of `delta.aggregate` for what every column without a rule does."""

POSITION = "position"
"""The value of `delta.sequence-by` for the order of the records."""

_ORDERED = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL", "STRING", "DATE", "TIMESTAMP", "TIMESTAMP_LTZ")
"""Types whose values every engine orders in the same way."""

_RULES = (LAST, *(rule.value for rule in ColumnRule))
# A sum of floating-point numbers depends on the order of its additions, and so on the bounds of batches.
_COMPARED = (*_ORDERED, "FLOAT", "DOUBLE")
_TYPES_OF_RULES = {"min": _COMPARED, "max": _COMPARED, "sum": _ORDERED[:5], "collect-set": _ORDERED}


def sequence_columns(
    given: str | Sequence[str], topic: Topic, key: str = "delta.sequence-by"
) -> tuple[str, ...]:
    """Returns the columns, the most significant first; none for `position`, the order of the records.

    Raises OptionError, which names `key`, for columns by which changes cannot be ordered.
    """
    if given == POSITION:
        return ()
    names = (given,) if isinstance(given, str) else tuple(given)
    schema = topic.schema
    _refuse_keyless(topic, key, "and rows without a key are added in the order of their records")
    columns: tuple[PhysicalColumn | MetadataColumn, ...] = (*schema.physical, *schema.metadata)
    types = {column.name: column.type for column in columns}
    for name in names:
        if name in schema.primary_key:
            raise OptionError(
                f"{key}: {name!r} is in the PRIMARY KEY, so all changes of a row have the same value; name another "
                f"column, or remove {key}"
            )
        if name in schema.names and name not in types:
            raise OptionError(
                f"{key}: {name!r} is a computed column, which a deletion does not have; name a column of the record, "
                "for example one METADATA FROM 'timestamp'"
            )
        if name not in types:
            raise OptionError(
                f"{key}: {name!r} is not a column of the DDL; its columns are {', '.join(types)}"
            )
        type = types[name]
        if not (isinstance(type, ScalarType) and type.name in _ORDERED):
            raise OptionError(f"{key}: {name!r} has the type {type.flink()}; legal are {', '.join(_ORDERED)}")
    return names


def sequence_metadata(names: Sequence[str], topic: Topic) -> dict[str, str]:
    """Returns the METADATA keys of those of the columns that have one."""
    return {column.name: column.key for column in topic.schema.metadata if column.name in names}


def history_of(kind: str, columns: Sequence[str] | None, topic: Topic, sequence: Sequence[str]) -> History:
    """Returns the history of that kind in these columns of a table whose changes are ordered by `sequence`.

    Raises OptionError unless one column orders them, which a deletion has of its own, and for columns that the DDL has,
    too.
    """
    if len(sequence) != 1:
        raise OptionError(
            "delta.history: a row is valid from the value of one column of its record to that of the next change, so "
            f"{POSITION}, which has no order over partitions, and several columns cannot be it; set "
            "delta.sequence-by to a column, for example one METADATA FROM 'timestamp'"
        )
    if not topic.is_upsert and sequence[0] not in (column.name for column in topic.schema.metadata):
        raise OptionError(
            f"delta.history: a deletion of {topic.value.name} has the {sequence[0]!r} of the row that it deletes, so "
            "it would end this row where it begins, and leave nothing of it; set delta.sequence-by to a column of the "
            "record, for example one METADATA FROM 'timestamp'"
        )
    default = History.bitemporal() if kind == "bitemporal" else History()
    return History(*_beside_those_of(topic, columns, default.columns))


def append_history_of(columns: Sequence[str] | None, topic: Topic) -> AppendHistory:
    """Returns the history of all changes in these columns. Raises OptionError for columns that the DDL has, too."""
    return AppendHistory(*_beside_those_of(topic, columns, AppendHistory().columns))


def with_all_changes(topic: Topic, history: AppendHistory | None) -> Topic:
    """Returns the topic of a table that has a row for each change: without a PRIMARY KEY, and with the columns of
    `history`, as a DDL declares them with METADATA. The same without a history."""
    if history is None:
        return topic
    keys = (ROW_KIND, "topic", "partition", "offset", ROW_NUMBER)
    types = (ScalarType(name) for name in ("STRING", "STRING", "INT", "BIGINT", "INT"))
    columns = (
        MetadataColumn(name, type, key, virtual=True)
        for name, type, key in zip(history.columns, types, keys, strict=True)
    )
    schema = replace(topic.schema, columns=(*topic.schema.columns, *columns), primary_key=())
    return replace(topic, schema=schema, record_key=topic.schema.primary_key)


def _beside_those_of(topic: Topic, given: Sequence[str] | None, defaults: Sequence[str]) -> Sequence[str]:
    """Returns the columns of `delta.history-columns`. Raises OptionError for one of the DDL."""
    in_ddl = {name.lower(): name for name in topic.schema.names}
    columns = defaults if given is None else given
    for name in columns:
        if name.lower() in in_ddl:
            raise OptionError(
                f"delta.history-columns: {in_ddl[name.lower()]!r} is a column of the DDL; choose another name"
            )
    return columns


def delete_condition(
    given: str | None, topic: Topic, key: str = "delta.apply-as-delete"
) -> ComputedColumn | None:
    """Returns the condition under which a change that sets a row deletes it, or all rows; None where there is none.

    Raises OptionError without a PRIMARY KEY, DdlError for an illegal condition; both name `key`.
    """
    if given is None:
        return None
    schema = topic.schema
    _refuse_keyless(topic, key, "by which deleted rows are found")
    columns: tuple[PhysicalColumn | MetadataColumn, ...] = (*schema.physical, *schema.metadata)
    return condition(given, key, {column.name: column.type for column in columns})


def ignored_nulls(
    given: bool | Sequence[str], topic: Topic, key: str = "delta.ignore-null-updates"
) -> tuple[str, ...]:
    """Returns the columns whose values a row keeps where a change has NULL, in the order of the DDL.

    Raises OptionError, which names `key`, without a PRIMARY KEY, for computed columns, and for other columns than
    physical ones outside the key.
    """
    if not given:
        return ()
    schema = topic.schema
    legal = [column.name for column in schema.physical if column.name not in schema.primary_key]
    _refuse_unkept(topic, key)
    for name in () if isinstance(given, bool) else given:
        if name not in legal:
            raise OptionError(
                f"{key}: {name!r} is none of the columns that may keep a value: {', '.join(legal)}"
            )
    return tuple(legal if isinstance(given, bool) else (name for name in legal if name in given))


def naming_column(given: str | None, topic: Topic, key: str = "delta.update-columns") -> str | None:
    """Returns the column of a record that names the columns which it sets; None where it sets all.

    Raises OptionError, which names `key`, without a PRIMARY KEY, for computed columns, and for a column that is no
    ARRAY<STRING> of the record.
    """
    if given is None:
        return None
    schema = topic.schema
    _refuse_unkept(topic, key)
    type = next((column.type for column in schema.physical if column.name == given), None)
    if not (
        isinstance(type, ArrayType) and isinstance(type.element, ScalarType) and type.element.name == "STRING"
    ):
        raise OptionError(
            f"{key}: {given!r} is no physical column ARRAY<STRING> of the DDL; declare it as one"
        )
    return given


def column_rules(
    given: Mapping[str, str], topic: Topic, key: str = "delta.aggregate"
) -> dict[str, ColumnRule]:
    """Returns the rules of columns whose values are combined with those of the row, in the order of the DDL.

    Raises OptionError, which names `key`, without a PRIMARY KEY, for computed columns, for other columns than physical
    ones outside the key, and for a rule that has no meaning for the type of its column or the format of the topic.
    """
    if not given:
        return {}
    _refuse_unkept(topic, key)
    types = {c.name: c.type for c in topic.schema.physical if c.name not in topic.schema.primary_key}
    for name, rule in given.items():
        if name not in types:
            raise OptionError(
                f"{key}: {name!r} is none of the columns that may have a rule: {', '.join(types)}"
            )
        if rule not in _RULES:
            raise OptionError(f"{key}: {name!r} has the rule {rule!r}; legal are {', '.join(_RULES)}")
        type, legal = types[name], _TYPES_OF_RULES.get(rule)
        is_of_items = rule == ColumnRule.COLLECT_SET
        valued = (
            type.element if is_of_items and isinstance(type, ArrayType) else None if is_of_items else type
        )
        if legal and not (isinstance(valued, ScalarType) and valued.name in legal):
            of = "ARRAY of " if is_of_items else ""
            raise OptionError(
                f"{key}: {name!r} has the type {type.flink()}, and {rule} needs {of}{', '.join(legal)}"
            )
        if rule == ColumnRule.SUM and not topic.is_upsert:
            raise OptionError(
                f"{key}: {name!r}: an update of {topic.value.name} has the whole value of its row, and sum would add "
                "the values of all its updates; use max, min, first or last"
            )
    return {name: ColumnRule(given[name]) for name in types if given.get(name, LAST) != LAST}


def deletion_column(given: str | None, topic: Topic) -> str | None:
    """Returns the column of `delta.soft-delete`; None where deletions remove rows.

    Raises OptionError without a PRIMARY KEY, for a column of the DDL, and for a name of the bridge's own columns.
    """
    key = "delta.soft-delete"
    if given is None:
        return None
    schema = topic.schema
    if given.startswith("__"):
        raise OptionError(
            f"{key}: {given!r}: names that start with two underscores are reserved for the bridge; choose another one"
        )
    _refuse_keyless(topic, key, "by which the deleted row is found")
    if given.lower() in (name.lower() for name in schema.names):
        raise OptionError(
            f"{key}: {given!r} is a column of the DDL, and the bridge adds that of the deletion itself; name another "
            "one, or remove it from the DDL"
        )
    return given


def refuse_unfit_truncates(target: DeltaTarget, topic: Topic, keys: str) -> None:
    """Raises OptionError where `truncate` has no effect, and for `apply` where a truncate has no certain place among
    the other records. `keys` makes the keys of messages, `delta.{}`."""
    mode = target.truncate
    given, condition = keys.format("truncate"), keys.format("apply-as-truncate")
    way_out = f"set {given} to refuse or ignore"
    if mode is Truncate.REFUSE:
        return
    if target.apply_as_truncate is None and not FORMATS[topic.value.name].truncates:
        raise OptionError(
            f"{given}: {mode.value} has no effect, as no record of format {topic.value.name!r} is a truncate; set "
            f"{condition}, or remove {given}"
        )
    if mode is Truncate.IGNORE:
        return
    if not topic.schema.primary_key:
        raise OptionError(
            f"{given}: the DDL has no PRIMARY KEY, so only rows are added; {way_out}, or declare one"
        )
    no_row = [
        name
        for name in target.sequence_by
        if target.sequence_metadata.get(name, "value.").startswith("value.")
    ]
    if no_row and target.apply_as_truncate is None:
        raise OptionError(
            f"{given}: a truncate of format {topic.value.name!r} has no row, so no {no_row[0]!r} by which "
            f"{keys.format('sequence-by')} orders it; {way_out}, or order by a column METADATA FROM 'timestamp'"
        )
    if topic.pattern is not None or len(topic.names) > 1:
        raise OptionError(
            f"{given}: the table has rows of several topics, and a truncate is of one of them; {way_out}, or read one "
            "topic"
        )
    if target.history is not None:
        raise OptionError(
            f"{given}: apply cannot be combined with {keys.format('history')}, which keeps the rows that were valid "
            f"before; {way_out}, or remove the other"
        )
    if target.soft_delete is not None:
        raise OptionError(
            f"{given}: apply cannot be combined with {keys.format('soft-delete')}, which keeps deleted rows; "
            f"{way_out}, or remove the other"
        )


def refuse_unfit_first_row(target: DeltaTarget, topic: Topic, keys: str) -> None:
    """Raises OptionError for `first-row` and `ignore-delete` without a PRIMARY KEY, and beside what they leave without
    a meaning. `keys` makes the keys of messages, `delta.{}`."""
    others = {
        "sequence-by": bool(target.sequence_by),
        "ignore-null-updates": bool(target.ignore_nulls),
        "update-columns": target.update_columns is not None,
        "soft-delete": target.soft_delete is not None,
    }
    excluded = {
        "first-row": (target.first_row, tuple(others)),
        "ignore-delete": (target.ignore_delete, ("soft-delete",)),
    }
    for name, (is_set, without) in excluded.items():
        if is_set:
            _refuse_keyless(topic, keys.format(name), "by which a row is known again")
        for other in without:
            if is_set and others[other]:
                raise OptionError(
                    f"{keys.format(name)} cannot be combined with {keys.format(other)}, which would have no effect; "
                    "remove one of them"
                )


def refuse_unfit_rules(target: DeltaTarget, keys: str) -> None:
    """Raises OptionError for `aggregate` beside what has another rule for the same columns, or for all."""
    others = {
        "sequence-by": bool(target.sequence_by),
        "first-row": target.first_row,
        "update-columns": target.update_columns is not None,
        "soft-delete": target.soft_delete is not None,
    }
    for other, is_set in others.items():
        if target.aggregate and is_set:
            raise OptionError(
                f"{keys.format('aggregate')} cannot be combined with {keys.format(other)}; remove one of them"
            )
    if both := sorted(target.aggregate.keys() & set(target.ignore_nulls)):
        raise OptionError(
            f"{keys.format('ignore-null-updates')}: {both[0]!r} has a rule of {keys.format('aggregate')}, by which "
            "NULL never counts; list the other columns"
        )


def refuse_ignored_name(target: DeltaTarget, keys: str) -> None:
    """Raises OptionError where `ignore-null-updates` lists the column of `update-columns`, whose value no row keeps."""
    by = target.update_columns
    if by in target.ignore_nulls and not target.ignores_all_nulls:
        raise OptionError(
            f"{keys.format('ignore-null-updates')}: {by!r} is the column of {keys.format('update-columns')}, which "
            "each record sets; leave it out"
        )


def _refuse_keyless(topic: Topic, key: str, why: str) -> None:
    if not topic.schema.primary_key:
        raise OptionError(f"{key}: the DDL has no PRIMARY KEY, {why}; declare one, or remove {key}")


def _refuse_unkept(topic: Topic, key: str) -> None:
    """Refuse a DDL whose rows cannot keep values that a change does not set."""
    _refuse_keyless(topic, key, "by which a row is updated")
    if computed := topic.schema.computed:
        raise OptionError(
            f"{key}: column {computed[0].name!r} is computed of what a record has, not of what the row keeps; "
            f"remove it, or {key}"
        )

"""Says in a sentence how the changes of a topic become rows of the table, for `bridge validate`."""

from __future__ import annotations

from bridge.console import duration
from bridge.definition import Definition, DeltaTarget, Truncate


def semantics_text(definition: Definition) -> str:
    """Returns the sentence, without a full stop: which change of a key counts, what it sets, what deletes rows."""
    target = definition.delta
    if target.append_history is not None:
        return "each change is a row of its own, with its row kind and place, and stays as it is"
    if definition.topic.appends:
        return "each change adds its row, as there is no PRIMARY KEY"
    return "; ".join([_which(target), *_what(target), *_deletions(target), *_truncates(target)])


def _which(target: DeltaTarget) -> str:
    """Which change of a key counts."""
    if target.first_row:
        return "the first change of a key counts"
    if not target.sequence_by:
        return "the last change of a key counts, by its position in the topic"
    order = ", then ".join(target.sequence_by)
    memory = duration(target.delete_memory_seconds).removesuffix(" 0 h").removesuffix(" 0 min")
    remembered = f"deleted keys are remembered for {memory}"
    if target.history is not None:
        since = f"a row for each interval in which a key had the same values, from {order} to that of its next change"
        known = "; what the table knew before stays, with its system time" if target.history.system_to else ""
        return f"{since}, also of late ones{known}; {remembered}"
    return f"the change of a key with the greatest {order} counts, also a late one; {remembered}"


def _what(target: DeltaTarget) -> list[str]:
    """What it sets."""
    found = []
    if target.merge_columns:
        found.append(f"it sets {', '.join(target.merge_columns)} of a row that other pipelines write, too")
    if target.update_columns is not None:
        found.append(f"it sets the columns that its {target.update_columns} names, all where this is NULL")
    if target.ignore_nulls:
        found.append(f"where it has NULL in {', '.join(target.ignore_nulls)}, the row keeps its value")
    if target.aggregate:
        rules = ", ".join(f"{name} ({rule.value})" for name, rule in target.aggregate.items())
        found.append(f"values are combined with those of the row: {rules}")
    return found


def _deletions(target: DeltaTarget) -> list[str]:
    found = []
    if target.ignore_delete:
        found.append("deletions have no effect")
    elif target.first_row:
        found.append("a deletion is a bad record")
    elif target.soft_delete is not None:
        found.append(f"a deletion sets {target.soft_delete} and leaves the row")
    elif target.history is not None:
        found.append("a deletion ends the interval")
    elif target.merge_columns:
        found.append("a deletion sets them to NULL, and deletes the row where no other column has a value")
    else:
        found.append("a deletion deletes the row")
    if target.apply_as_delete is not None:
        found.append(f"a record is one where {target.apply_as_delete.expression}")
    return found


def _truncates(target: DeltaTarget) -> list[str]:
    condition = target.apply_as_truncate
    which = "" if condition is None else f" (a record where {condition.expression})"
    if target.truncate is Truncate.REFUSE:
        return [f"a truncate{which} stops the run"] if which else []
    if target.truncate is Truncate.IGNORE:
        return [f"a truncate{which} has no effect"]
    which_rows = (
        f"rows whose {', then '.join(target.sequence_by)} is not greater"
        if target.sequence_by
        else "all rows"
    )
    return [f"a truncate{which} deletes {which_rows}"]

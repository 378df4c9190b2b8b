"""What a script would do, by its text alone: without Spark, brokers and tables."""

from __future__ import annotations

from bridge.pipelines.scripts.state import ScriptState
from bridge.sql import InsertPlan, Script
from bridge.sql.plan import SourceTable, WindowPlan
from bridge.sql.settings import CLOSED_WINDOWS


def explain_script(script: Script) -> dict[str, str]:
    """Returns rows of two columns: the states of the sources, and of each INSERT what it computes again and sends."""
    state = ScriptState(script)
    rows = {"state": state.folder}
    for source in script.sources:
        target = state.source_target(state.tables[source.name])
        by = f"by key ({', '.join(source.key)})" if source.key else "all rows"
        kept = f"read as it is, {by}"
        if state.ingest(state.tables[source.name]) is not None:
            kept = f"kept in {target}, {by}; {_growth(script, source)}"
        rows[f"source {source.name}"] = f"{source.connector} {source.place}: {kept}"
    for plan in script.inserts:
        own = f", its columns ({', '.join(plan.merge_columns)})" if plan.merge_columns else ""
        rows[f"INSERT {plan.name}"] = (
            f"line {plan.line}: {plan.kind.value}, result in {state.result_target(plan)}{own}; {_rows(plan)}"
        )
        rows[f"INSERT {plan.name}: computes"] = _computes(plan)
        rows[f"INSERT {plan.name}: sends"] = _sends(state, plan)
    return rows


def _growth(script: Script, source: SourceTable) -> str:
    """How the state of a topic grows; joins need rows again that came long ago."""
    if source.key:
        return "it grows with the number of keys, and shrinks with each delete"
    if script.windowed_reads(source.name):
        if script.removes_closed:
            return "it has the rows of open windows, as those of closed ones are removed"
        return f"it grows with each row; SET '{CLOSED_WINDOWS}' = 'remove' removes rows of closed windows"
    plans = (plan for plan in script.inserts if plan.windows is None and "join" in plan.operations)
    is_joined = any(state.source == source.name for plan in plans for state in plan.states)
    return "a join needs them, so it grows with each row" if is_joined else "it grows with each row"


def _rows(plan: InsertPlan) -> str:
    """How the result grows."""
    if plan.row_key:
        return "it has one row for each row of the query"
    if plan.key:
        return f"it has one row for each ({', '.join(plan.key)})"
    return "it grows with each row that is added" if plan.sources else "it does not grow"


def _computes(plan: InsertPlan) -> str:
    names = ", ".join(source.name for source in plan.sources)
    if not plan.sources:
        return "its rows once"
    if plan.windows is not None:
        return _windows(plan.windows)
    if plan.joined is not None:
        merged = ", grouped and merged with the groups in the result" if plan.accumulators else ""
        return (
            f"the joined rows of the rows that {names} got since the last batch{merged}; reads all rows of the other "
            "tables"
        )
    if not plan.is_updating:
        last = f"; the last row of each ({', '.join(plan.key)}) counts" if plan.key else ""
        return f"the rows that {names} got since the last batch{last}"
    if plan.accumulators:
        return (
            f"the groups of the rows that {names} got since the last batch, merged with those in the result"
        )
    if not plan.parts:
        return f"all rows from all rows of {names}, in every batch; those that differ are written"
    columns = ", ".join(part.name for part in plan.parts)
    read = "; ".join(_read(plan, source.name) for source in plan.sources)
    return f"the rows of each ({columns}) to which a changed row belongs; reads {read}"


def _windows(windows: WindowPlan) -> str:
    marks = " and ".join(
        f"{time.source}.{time.column} - {time.delay_ms:,} ms" for time in windows.event_times
    )
    late = "late rows are dropped"
    if windows.lateness_ms:
        late = f"rows of closed windows count for {windows.lateness_ms:,} ms more"
    return f"the windows that the watermark ({marks}) has passed since the last batch; {late}"


def _read(plan: InsertPlan, source: str) -> str:
    columns = [found[source] for part in plan.parts if source in (found := dict(part.sources))]
    return (
        f"of {source} the rows whose ({', '.join(columns)}) changed" if columns else f"all rows of {source}"
    )


def _sends(state: ScriptState, plan: InsertPlan) -> str:
    sink = state.tables[plan.sink]
    if sink.topic is None:
        return {"delta": "nothing: the result is the sink", "print": "its changes to the terminal"}.get(
            sink.connector.value, "nothing"
        )
    if state.is_sent_later(plan):
        return f"nothing: its rows are sent with those of the later INSERT into {plan.sink}"
    what = "a record for each changed row, a tombstone for each deleted one" if plan.key else "each new row"
    if not sink.topic.is_upsert:
        what = (
            f"each change as {sink.topic.value.name}"
            if plan.is_updating or plan.merge_columns
            else "each new row"
        )
    return f"{what}, to {sink.place} ({sink.topic.sink.delivery_guarantee.value})"


def used_paths(script: Script) -> list[str]:
    """The folders that a run reads and writes."""
    state = ScriptState(script)
    deltas = [table.delta.path for table in script.tables if table.delta is not None]
    return [state.folder, *(path for path in deltas if path is not None)]

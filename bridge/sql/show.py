"""What a script resolves to, as text and as JSON, for `bridge validate`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from bridge.sql.connectors import Table
from bridge.sql.plan import InsertPlan, ResultColumn, Script, WindowPlan


def as_rows(script: Script) -> dict[str, str]:
    """Returns the statements, tables and INSERTs of a script as rows of two columns. Nothing in them is secret."""
    rows = {"statements": str(len(script.statements))}
    rows |= {f"table {t.name}": _table(t) for t in script.tables}
    if script.views:
        rows["views"] = ", ".join(script.views)
    for plan in script.inserts:
        rows |= _insert(plan)
    for number, explained in enumerate(script.explained, 1):
        sql = explained.spark_sql if isinstance(explained, InsertPlan) else explained
        rows[f"EXPLAIN {number}"] = sql
    if script.state:
        rows["state"] = script.state
    return rows | {f"warning {n}": text for n, text in enumerate(script.warnings, 1)}


def as_json(script: Script) -> dict[str, Any]:
    """Returns the script as values of JSON, with the type of every column of every INSERT."""
    return {
        "name": script.name,
        "file": script.file,
        "state": script.state,
        "statements": [
            {"kind": type(statement).__name__, "line": statement.line} for statement in script.statements
        ],
        "tables": [
            {
                "name": table.name,
                "connector": table.connector.value,
                "place": table.place,
                "primary_key": list(table.key),
                "options": {key: str(value) for key, value in table.masked_options.items()},
            }
            for table in script.tables
        ],
        "views": list(script.views),
        "sources": [asdict(source) for source in script.sources],
        "inserts": [_plan(plan) for plan in script.inserts],
        "explained": [_plan(e) if isinstance(e, InsertPlan) else e for e in script.explained],
        "warnings": list(script.warnings),
    }


def _table(table: Table) -> str:
    key = f", PRIMARY KEY ({', '.join(table.key)})" if table.key else ""
    place = f" {table.place}" if table.place else ""
    return f"{table.connector.value}{place}{key}"


def _insert(plan: InsertPlan) -> dict[str, str]:
    head = f"INSERT {plan.name}"
    changes = "rows are updated" if plan.is_updating else "rows are only added"
    key = f", by key ({', '.join(plan.key)})" if plan.key else ""
    if key and not plan.is_updating:
        key = f", and the last one of a key ({', '.join(plan.key)}) counts"
    own = f"; writes the columns ({', '.join(plan.merge_columns)}) only" if plan.merge_columns else ""
    rows = {head: f"line {plan.line}: {plan.kind.value} of {_names(plan)}; {changes}{key}{own}"}
    states = ", ".join(f"{s.source} ({', '.join(s.columns)})" for s in plan.states)
    rows[f"{head}: state"] = states or "none"
    rows[f"{head}: computed again"] = _parts(plan)
    rows[f"{head}: Spark SQL"] = plan.spark_sql
    rows[f"{head}: fingerprint"] = plan.fingerprint
    return rows


def _windows(windows: WindowPlan) -> dict[str, Any]:
    return {
        "watermarks": {
            time.source: {"column": time.column, "delay_ms": time.delay_ms} for time in windows.event_times
        },
        "allowed_lateness_ms": windows.lateness_ms,
    }


def _parts(plan: InsertPlan) -> str:
    if plan.windows is not None:
        return "the windows that closed"
    if plan.accumulators:
        return "the groups of the added rows"
    if not plan.parts:
        return "all rows"
    return "rows by " + " and ".join(
        f"{part.name} (from {', '.join(f'{source}.{column}' for source, column in part.sources)})"
        for part in plan.parts
    )


def _names(plan: InsertPlan) -> str:
    return ", ".join(source.name for source in plan.sources) or "constants"


def _column(column: ResultColumn) -> dict[str, str]:
    return {"name": column.name, "type": column.type.flink()}


def _plan(plan: InsertPlan) -> dict[str, Any]:
    return {
        "name": plan.name,
        "line": plan.line,
        "sink": plan.sink,
        "kind": plan.kind.value,
        "operations": list(plan.operations),
        "columns": [_column(c) for c in plan.columns],
        "key": list(plan.key),
        "merge_columns": list(plan.merge_columns),
        "is_updating": plan.is_updating,
        "sources": [asdict(source) for source in plan.sources],
        "states": [asdict(state) for state in plan.states],
        "views": list(plan.views),
        "parts": [{"column": p.name, "sources": dict(p.sources)} for p in plan.parts],
        "parts_sql": plan.parts_sql,
        "accumulators": {name: how.value for name, how in plan.accumulators.items()},
        **({"kept_columns": [_column(c) for c in plan.kept_columns]} if plan.kept_columns else {}),
        "counted_values": dict(plan.counted_values),
        "windows": None if plan.windows is None else _windows(plan.windows),
        "spark_sql": plan.spark_sql,
        "fingerprint": plan.fingerprint,
    }

"""The table of results of quality checks: a row for each expectation of each run.

Every row repeats the facts of its run, and only the list of columns is nested.
"""

from __future__ import annotations

from collections.abc import Mapping

from bridge.delta.result_table import ResultTable

COLUMNS: Mapping[str, tuple[str, str]] = {
    "run_id": ("string", "id of the run; the same in all of its rows"),
    "pipeline": ("string", "name of the pipeline"),
    "suite": ("string", "name of the suite"),
    "started": ("timestamp", "when the run began"),
    "seconds": ("double", "how long the run took"),
    "trigger": ("string", "what started the run: check, schedule, gate"),
    "number": ("int", "place of the expectation in the suite, from 1"),
    "expectation": ("string", "type of the expectation"),
    "title": ("string", "the expectation in one sentence"),
    "columns": ("array<string>", "columns it is about"),
    "severity": ("string", "critical, warning, info"),
    "success": ("boolean", "whether it was met"),
    "observed": ("string", "what was observed, as a sentence"),
    "expected": ("string", "what was expected, as a sentence"),
    "unexpected_count": ("bigint", "values that are not as expected; null for expectations about aggregates"),
    "unexpected_percent": ("double", "the same, 0 to 100"),
    "reason": ("string", "why it could not be evaluated; null where it was"),
    "judged": (
        "string",
        "what was checked: table, changes (rows that changed after since_version), batch (of a gate)",
    ),
    "since_version": ("bigint", "of a check by --since; null for the whole table"),
    "changed_rows": ("bigint", "rows that had changed after since_version; of a gate, rows it checked"),
    "table": ("string", "path or name of the table"),
    "table_version": ("bigint", "the version that was checked"),
    "topic": ("string", "the pipeline's topic"),
    "offsets": ("string", "next offsets up to which the table includes the topic, JSON"),
    "row_count": ("bigint", "rows of the table"),
    "lag": ("bigint", "offsets between the table and the topic's end; null where it is not known"),
    "inserted": ("bigint", "rows inserted since the version of the run before"),
    "updated": ("bigint", "rows updated since then"),
    "deleted": ("bigint", "rows deleted since then"),
    "newest_event_time": ("timestamp", "largest value of the WATERMARK column"),
    "newest_arrival": ("timestamp", "when rows were last committed to the table"),
    "bridge_version": ("string", "version of the bridge"),
}
"""Name -> (type, meaning)."""

QUALITY_RESULTS = ResultTable(
    "quality results", COLUMNS, "run_id", "`quality: {results: {path: ...}}`", "run the check"
)

"""The ledger of `bridge verify --ledger`: a row for each comparison of a topic with its table."""

from __future__ import annotations

from collections.abc import Mapping

from bridge.delta.result_table import ResultTable

COLUMNS: Mapping[str, tuple[str, str]] = {
    "pipeline": ("string", "name of the pipeline"),
    "direction": ("string", "ingest: the table follows the topic; publish: the topic follows the table"),
    "started": ("timestamp", "when the comparison began"),
    "seconds": ("double", "how long it took"),
    "result": ("string", "equal, different, or failed: no comparison was possible"),
    "error": ("string", "why it failed; null for the others"),
    "topic": ("string", "the pipeline's topic"),
    "table": ("string", "path or name of the table"),
    "version": ("bigint", "the table version that was compared"),
    "offsets": ("string", "next offsets up to which the topic was compared, JSON"),
    "topic_rows": ("bigint", "rows that the topic describes up to there"),
    "table_rows": ("bigint", "rows of the table"),
    "topic_checksum": ("string", "sum of the fingerprints of the rows, hexadecimal"),
    "table_checksum": ("string", "the same of the table; equal where the rows are"),
    "missing_in_table": ("bigint", "keys that only the topic has"),
    "missing_in_topic": ("bigint", "keys that only the table has"),
    "different": ("bigint", "keys with different rows"),
    "duplicate_keys": ("bigint", "keys that one side has more than once"),
    "superseded": ("bigint", "keys whose records may have been compacted meanwhile, not compared"),
    "bridge_version": ("string", "version of the bridge"),
}
"""Name -> (type, meaning)."""

VERIFY_LEDGER = ResultTable("comparisons", COLUMNS, "topic_checksum", "`--ledger PATH`", "verify")

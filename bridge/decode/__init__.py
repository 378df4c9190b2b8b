"""Decodes records into changes of the table's rows.

`upsert` is for topics whose key identifies the row (upsert-kafka), `events` for all others (kafka). `rows` is for rows
of files and tables, which are no records.
"""

from bridge.decode.column_names import BAD_KEY_ID, DROPPED, NO_ROW, SKIP, TRUNCATE, UNAVAILABLE
from bridge.decode.events import decode_events
from bridge.decode.rows import CORRUPT, decode_rows
from bridge.decode.upsert import decode_keys, decode_values

__all__ = [
    "BAD_KEY_ID",
    "CORRUPT",
    "DROPPED",
    "NO_ROW",
    "SKIP",
    "TRUNCATE",
    "UNAVAILABLE",
    "decode_events",
    "decode_keys",
    "decode_rows",
    "decode_values",
]

"""The sentence of `bridge validate` about the changes of a topic."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.config import semantics_text
from tests.config.files import WHOLE, loaded

DDL = "id BIGINT, note STRING,"
COLUMNS = "id BIGINT, note STRING, n INT, at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL, cols ARRAY<STRING>,"
LAST, DELETES = "the last change of a key counts, by its position in the topic", "a deletion deletes the row"
EMPTIES = "a deletion sets them to NULL, and deletes the row where no other column has a value"
GREATEST = (
    "the change of a key with the greatest at counts, also a late one; deleted keys are remembered for "
)


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ("", f"{LAST}; {DELETES}"),
        ("sequence-by: at, delete-memory: 36 h, ", f"{GREATEST}36 h; {DELETES}"),
        (
            "sequence-by: [n, at], apply-as-delete: n < 0, ",
            f"{GREATEST.replace('greatest at', 'greatest n, then at')}7 d; {DELETES}; a record is one where n < 0",
        ),
        (
            "sequence-by: at, history: scd2, ",
            "a row for each interval in which a key had the same values, from at to that of its next change, also of "
            "late ones; deleted keys are remembered for 7 d; a deletion ends the interval",
        ),
        (
            "sequence-by: at, history: bitemporal, ",
            "a row for each interval in which a key had the same values, from at to that of its next change, also of "
            "late ones; what the table knew before stays, with its system time; deleted keys are remembered for 7 d; "
            "a deletion ends the interval",
        ),
        (
            "history: append, ",
            "each change is a row of its own, with its row kind and place, and stays as it is",
        ),
        (
            "merge-columns: [note, n, cols, at], ",
            f"{LAST}; it sets note, n, at, cols of a row that other pipelines write, too; {EMPTIES}",
        ),
        (
            "merge-columns: all, sequence-by: at, apply-as-delete: n < 0, ",
            f"{GREATEST}7 d; it sets note, n, at, cols of a row that other pipelines write, too; {EMPTIES}; a record "
            "is one where n < 0",
        ),
        (
            "update-columns: cols, ignore-null-updates: [n], ",
            f"{LAST}; it sets the columns that its cols names, all where this is NULL; where it has NULL in n, the row "
            f"keeps its value; {DELETES}",
        ),
        (
            "aggregate: {n: sum, cols: collect-set}, ",
            f"{LAST}; values are combined with those of the row: n (sum), cols (collect-set); {DELETES}",
        ),
        ("soft-delete: gone, ", f"{LAST}; a deletion sets gone and leaves the row"),
        ("first-row: true, ", "the first change of a key counts; a deletion is a bad record"),
        (
            "first-row: true, ignore-delete: true, ",
            "the first change of a key counts; deletions have no effect",
        ),
        (
            "apply-as-truncate: n = 0, ",
            f"{LAST}; {DELETES}; a truncate (a record where n = 0) stops the run",
        ),
        (
            "sequence-by: n, apply-as-truncate: n = 0, truncate: apply, ",
            f"{GREATEST.replace('greatest at', 'greatest n')}7 d; {DELETES}; a truncate (a record where n = 0) deletes "
            "rows whose n is not greater",
        ),
        (
            "apply-as-truncate: n = 0, truncate: apply, ",
            f"{LAST}; {DELETES}; a truncate (a record where n = 0) deletes all rows",
        ),
    ],
)
def test_what_a_file_says(tmp_path: Path, keys: str, sentence: str) -> None:
    text = WHOLE.replace(DDL, COLUMNS).replace("delta: {", f"delta: {{{keys}")
    assert semantics_text(loaded(tmp_path, text)) == sentence


def test_rows_without_a_key(tmp_path: Path) -> None:
    text = WHOLE.replace("PRIMARY KEY (id) NOT ENFORCED", "n INT").replace("upsert-kafka", "kafka")
    text = text.replace(
        "'key.format' = 'json', 'value.format'", "'scan.startup.mode' = 'earliest-offset', 'format'"
    )
    assert semantics_text(loaded(tmp_path, text)) == "each change adds its row, as there is no PRIMARY KEY"

"""How many rows a commit changed, by the metrics of its operation."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from bridge.commit_operations import row_counts


@pytest.mark.parametrize(
    ("operation", "metrics", "counts"),
    [
        (
            "MERGE",
            {"numTargetRowsInserted": "3", "numTargetRowsUpdated": "2", "numOutputRows": "9"},
            (3, 2, 0),
        ),
        ("MERGE", {"num_target_rows_inserted": 3, "num_target_rows_deleted": 1}, (3, 0, 1)),
        ("WRITE", {"numOutputRows": "9"}, (9, 0, 0)),
        ("UPDATE", {"numUpdatedRows": "4"}, (0, 4, 0)),
        ("DELETE", {"numDeletedRows": "5"}, (0, 0, 5)),
        ("OPTIMIZE", {"numRemovedFiles": "5"}, (0, 0, 0)),
        ("WRITE", {"num_added_rows": 3, "num_added_files": 1}, (3, 0, 0)),
        ("UPDATE", {"num_updated_rows": 1, "num_copied_rows": 2}, (0, 1, 0)),
        ("DELETE", {"num_deleted_rows": 1}, (0, 0, 1)),
        ("WRITE", {"numOutputRows": "many"}, (0, 0, 0)),
        ("MERGE", {"numTargetRowsInserted": None, "numTargetRowsUpdated": 2.0}, (0, 2, 0)),
        (None, {}, (0, 0, 0)),
    ],
)
def test_counts(operation: str | None, metrics: Mapping[str, object], counts: tuple[int, int, int]) -> None:
    assert row_counts(operation, metrics) == counts

"""A table of many small batches keeps few files, and rewrites a row a few times."""

from __future__ import annotations

import json
import random
from typing import Any

from bridge.delta.driver_merge.rewrites import files_to_rewrite


def file(rows: int, marked: int = 0, size: int = 1000) -> dict[str, Any]:
    vector = {"deletionVector": {"cardinality": marked}} if marked else {}
    return {"size": size, "stats": json.dumps({"numRecords": rows}), **vector}


def test_many_batches_keep_few_files() -> None:
    dice = random.Random(5)
    files: dict[str, dict[str, Any]] = {"base": file(1_000_000)}
    written = new = most = 0
    for number in range(3000):
        rows = dice.randint(1, 200)
        chosen = files_to_rewrite(files, {}, rows)
        total = rows + sum(json.loads(files.pop(name)["stats"])["numRecords"] for name in chosen)
        files[f"{number}"] = file(total)
        written, new, most = written + total, new + rows, max(most, len(files))
    assert "base" in files and most < 45
    assert written < 8 * new


def test_files_of_which_most_rows_are_gone_are_rewritten() -> None:
    files = {"half": file(100, 50), "less": file(100, 51), "soon": file(100, 40), "gone": file(10, 4)}
    assert files_to_rewrite(files, {"soon": 11, "gone": 6}, 1000) == ["less", "soon"]
    assert files_to_rewrite(files, {}, 0) == ["less"]


def test_large_files_are_left_to_optimize() -> None:
    large = {str(n): file(1_000_000, 900_000, size=65 << 20) for n in range(20)}
    assert files_to_rewrite(large, {}, 1 << 19) == []
    many_rows = {str(n): file(1 << 20) for n in range(20)}
    assert files_to_rewrite(many_rows, {}, 1 << 19) == []
    assert files_to_rewrite({str(n): {"size": 5, "stats": None} for n in range(20)}, {}, 3) == []

"""Asks Flink for the values of the corpus and stores them as data of the tests: `make flink-vectors`.

    python -m benchmarks.flink_vectors [--seed N] [--to FILE]

Takes some minutes. The file begins with the version of Flink and the seed. Each line after it is an expression with its
type and its values by row, an error in place of a value, or the reason for which Flink refuses it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import flink
from benchmarks.flink_vectors.corpus import columns, documents, expressions

__all__ = ["main"]

VECTORS = Path(__file__).parents[2] / "tests" / "expressions" / "vectors.jsonl"
_RUNNER = Path(__file__).with_name("FlinkVectors.java")


def main() -> int:
    """Writes the file and returns the exit code of Flink."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.flink_vectors", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--seed", type=int, default=0, help="draws the rows that are written as constants")
    parser.add_argument("--to", type=Path, default=VECTORS)
    asked = parser.parse_args()
    peer = flink.fetch()
    with tempfile.TemporaryDirectory(prefix="flink-vectors-") as folder:
        place = Path(folder)
        rows, table, asks, found = (place / n for n in ("rows", "table.sql", "expressions.json", "results"))
        rows.mkdir()
        (rows / "inputs.json").write_text("\n".join(documents()) + "\n")
        table.write_text(
            f"CREATE TABLE inputs ({columns()}) WITH ('connector' = 'filesystem', 'path' = '{rows.as_uri()}', "
            "'format' = 'json', 'json.timestamp-format.standard' = 'SQL')"
        )
        asks.write_text(json.dumps(expressions(asked.seed)))
        done = subprocess.run(peer.program(_RUNNER, place, [table, asks, found]), check=False)
        if done.returncode:
            return done.returncode
        head = json.dumps({"flink": flink.VERSION, "seed": asked.seed})
        asked.to.write_text(f"{head}\n{found.read_text()}")
    print(f"values of Flink {flink.VERSION} are in {asked.to}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

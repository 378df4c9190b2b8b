"""Asks Flink for the values of the corpus and stores them as data of the tests: `make flink-vectors`.

    python -m benchmarks.flink_vectors [--seed N] [--only expressions|aggregates|formats] [--new]

Takes some minutes; with `--new` only those expressions are asked that the file lacks. Each file begins with the
version of Flink. In that of expressions each line after it is an expression with its type and its values by row, an
error in place of a value, or the reason for which Flink refuses it; equal values of all rows are there once. The file
of aggregates has values by group. In that of formats, a line with a format, its
options and its columns is followed by a line for each document that it was given, with the rows that Flink reads, and
for each row, with the document that Flink writes.
"""

from __future__ import annotations

import argparse
import base64
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks import flink
from benchmarks.flink_vectors.aggregates import aggregates, members
from benchmarks.flink_vectors.corpus import columns, documents, expressions
from benchmarks.flink_vectors.documents import Case, cases

_TESTS = Path(__file__).parents[2] / "tests"
_EXPRESSIONS = _TESTS / "expressions" / "vectors.jsonl"
_AGGREGATES = _TESTS / "sql" / "vectors.jsonl"
_FORMATS = _TESTS / "formats" / "vectors.jsonl"


def main() -> int:
    """Writes the files and returns the exit code of Flink."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.flink_vectors", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--seed", type=int, default=0, help="draws the rows that are written as constants")
    parser.add_argument("--only", choices=("expressions", "aggregates", "formats"))
    parser.add_argument("--new", action="store_true", help="asks only expressions that the file lacks")
    asked = parser.parse_args()
    peer = flink.fetch()
    code = 0
    if asked.only in (None, "expressions"):
        head = {"flink": flink.VERSION, "seed": asked.seed}
        code = _ask(peer, _EXPRESSIONS, head, expressions(asked.seed), documents(), asked.new)
    if asked.only in (None, "aggregates") and not code:
        head = {"flink": flink.VERSION}
        code = _ask(peer, _AGGREGATES, head, aggregates(), members(), asked.new, "GROUP BY rid")
    if asked.only in (None, "formats") and not asked.new and not code:
        code = _ask_formats(peer)
    return code


def _ask(
    peer: flink.Flink,
    file: Path,
    about: Mapping[str, Any],
    wanted: list[str],
    inputs: Iterable[str],
    only_new: bool,
    *groups: str,
) -> int:
    head = json.dumps(about)
    known = _known(file, head) if only_new else {}
    asked = [e for e in wanted if e not in known]
    if not asked and list(known) == wanted:
        return 0
    with tempfile.TemporaryDirectory(prefix="flink-vectors-") as folder:
        place = Path(folder)
        rows, table, asks, found = (place / n for n in ("rows", "table.sql", "expressions.json", "results"))
        rows.mkdir()
        (rows / "inputs.json").write_text("\n".join(inputs) + "\n")
        table.write_text(
            f"CREATE TABLE inputs ({columns()}) WITH ('connector' = 'filesystem', 'path' = '{rows.as_uri()}', "
            "'format' = 'json', 'json.timestamp-format.standard' = 'SQL')"
        )
        asks.write_text(json.dumps(asked))
        code = _run(peer, "FlinkVectors.java", place, [table, asks, found, *groups])
        if not code:
            known |= _by_expression(found.read_text().splitlines())
            lines = (_short(json.loads(known[e])) for e in wanted)
            file.write_text("\n".join([head, *lines]) + "\n")
            print(f"values of Flink {flink.VERSION} are in {file}")
    return code


def _known(file: Path, head: str) -> dict[str, str]:
    """The lines of the file by their expressions; none if it has another head."""
    lines = file.read_text().splitlines() if file.exists() else [""]
    return _by_expression(lines[1:]) if lines[0] == head else {}


def _by_expression(lines: Iterable[str]) -> dict[str, str]:
    return {json.loads(line)["expression"]: line for line in lines}


def _short(result: dict[str, Any]) -> str:
    values = result.get("values")
    if values and all(value == values[0] and type(value) is type(values[0]) for value in values):
        result["value"] = result.pop("values")[0]
    return json.dumps(result, ensure_ascii=False, separators=(",", ":"))


def _ask_formats(peer: flink.Flink) -> int:
    with tempfile.TemporaryDirectory(prefix="flink-vectors-") as folder:
        place, asked = Path(folder), cases()
        asks, found = place / "cases.json", place / "results"
        asks.write_text(json.dumps([case.asked() for case in asked]))
        code = _run(peer, "FlinkFormats.java", place, [asks, found])
        if not code:
            results = [json.loads(line) for line in found.read_text().splitlines()]
            head = {"flink": flink.VERSION, "flink-sql-avro": flink.AVRO}
            lines = [
                head,
                *(line for pair in zip(asked, results, strict=True) for line in _lines(*pair)),
            ]
            _FORMATS.write_text(
                "".join(f"{json.dumps(line, separators=(',', ':'))}\n" for line in lines), encoding="ascii"
            )
            print(f"documents and rows of Flink {flink.VERSION} are in {_FORMATS}")
    return code


def _run(peer: flink.Flink, runner: str, place: Path, files: list[Path | str]) -> int:
    return subprocess.run(
        peer.program(Path(__file__).with_name(runner), place, files), check=False
    ).returncode


def _lines(case: Case, result: Mapping[str, Any]) -> Iterator[Any]:
    if "refused" in result:
        raise ValueError(f"Flink refuses {case.format} with {case.options}: {result['refused']}")
    yield {"format": case.format, "options": case.options, "columns": case.columns}
    for document, rows in zip(result["documents"], result.get("decoded", ()), strict=True):
        yield {"decode": _shown(document), "rows": rows}
    for row, document in zip(case.rows, result.get("encoded", ()), strict=True):
        yield {"encode": row, "document": _shown(document)}


def _shown(document: Any) -> Any:
    """A document, given in base64, as text where it is one; what is none, as it is."""
    if not isinstance(document, str):
        return document
    try:
        return base64.b64decode(document).decode()
    except UnicodeDecodeError:
        return {"bytes": document}


if __name__ == "__main__":
    sys.exit(main())

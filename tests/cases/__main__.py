"""Runs every case file of BRIDGE_CASES_DIR: `python -m tests.cases [ID ...]`. Exits with 1 when a case fails, or when
more are unsupported than unsupported.yaml allows."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import yaml

from bridge.embedded.broker import Broker
from bridge.session import build_session
from tests.cases.bench import World
from tests.cases.case import load
from tests.cases.divergences import read
from tests.cases.judge import Judge
from tests.cases.outcome import Kind, Outcome, summary, too_many


def main(ids: list[str]) -> int:
    """Prints a line per case and the counts; ids (or prefixes) select cases."""
    os.environ["TZ"] = "UTC"
    time.tzset()
    given = os.environ.get("BRIDGE_CASES_DIR", "")
    folder = Path(given)
    if not given or not folder.is_dir():
        print(f"BRIDGE_CASES_DIR must name a folder of case files; it is {given!r}", file=sys.stderr)
        return 2
    cases = [case for case in load(folder) if not ids or case.id.startswith(tuple(ids))]
    if not cases:
        chosen = f" begins with {', '.join(ids)}" if ids else ""
        print(f"no case file in {folder}{chosen}", file=sys.stderr)
        return 2
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="cases-", ignore_cleanup_errors=True) as work:
        os.environ.setdefault("BRIDGE_LOG", str(Path(work) / "bridge.log"))
        spark = build_session("bridge-cases", master="local[2]", conf={"spark.sql.shuffle.partitions": "2"})
        try:
            with Broker(Path(work) / "broker") as broker, ExitStack() as stack:
                world = World(spark, broker, Path(work))
                stack.callback(world.schemas.stop)
                judge = Judge(world, read(), _seconds())
                for case in cases:
                    started = time.monotonic()
                    outcomes.append(judge.verdict(case))
                    took = f" ({time.monotonic() - started:.0f} s)"
                    print(outcomes[-1].line(f"{case.id} {case.name}".strip() + took), flush=True)
        finally:
            spark.sparkContext.stop()
    print(summary(outcomes))
    told = too_many(outcomes, most_unsupported())
    if told:
        print(told, file=sys.stderr)
    return 1 if told or any(outcome.kind is Kind.FAIL for outcome in outcomes) else 0


def most_unsupported() -> int:
    """Returns the maximum number of unsupported cases. It only decreases; an increase needs a reason in the file."""
    most = yaml.safe_load((Path(__file__).parent / "unsupported.yaml").read_text(encoding="utf-8"))["most"]
    assert isinstance(most, int)
    return most


def _seconds() -> float:
    """Returns the time limit of a case; BRIDGE_CASE_SECONDS sets it."""
    return float(os.environ.get("BRIDGE_CASE_SECONDS", "300"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

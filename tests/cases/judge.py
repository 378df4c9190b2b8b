"""Runs cases and determines their outcomes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bridge.errors import UnsupportedError
from tests.cases import changes_of_documents, documents, ingesting, publishing, validating
from tests.cases.bench import Bench, World
from tests.cases.case import Case, Part
from tests.cases.divergences import Divergence, find
from tests.cases.outcome import Kind, Mismatch, Outcome, Unsupported, worst

_PATIENCE = 60.0
_WHOLE = {
    "ingest": ingesting.run,
    "decode": changes_of_documents.decode,
    "egress": publishing.run,
    "encode": changes_of_documents.encode,
    "roundtrip": publishing.roundtrip,
    "validate": validating.run,
}


@dataclass
class Judge:
    """Runs cases sequentially in one world; no case ends the run or exceeds its time limit."""

    world: World
    known: list[Divergence] = field(default_factory=list)
    seconds: float = 300.0

    def verdict(self, case: Case) -> Outcome:
        """Runs a case and returns its outcome; never raises."""
        if case.problem:
            return Outcome(Kind.FAIL, case.problem)
        found: list[Outcome] = []
        thread = threading.Thread(target=lambda: found.append(self._judged(case)), daemon=True)
        thread.start()
        thread.join(self.seconds)
        if not thread.is_alive():
            return found[0]
        self._break_off(thread)
        return Outcome(Kind.FAIL, f"not finished after {self.seconds:g} s")

    def _break_off(self, thread: threading.Thread) -> None:
        """Cancels the jobs of a case until it ends, so that it does not affect the next one."""
        until = time.monotonic() + _PATIENCE
        while thread.is_alive() and time.monotonic() < until:
            self.world.spark.sparkContext.cancelAllJobs()
            for query in self.world.spark.streams.active:
                query.stop()
            thread.join(0.5)

    def _judged(self, case: Case) -> Outcome:
        if case.kind != "vectors" and case.kind not in _WHOLE:
            return Outcome(Kind.UNSUPPORTED, f"case kind {case.kind!r}")
        if not case.vectors:
            return self._compared(case, None)
        return worst((n, self._compared(case, n)) for n in range(case.vectors))

    def _compared(self, case: Case, vector: int | None) -> Outcome:
        """Returns the outcome, with known divergences taken into account."""
        outcome = _attempt(lambda: self._run(case, vector))
        known = find(self.known, case, vector)
        if known is None or (outcome.kind is Kind.UNSUPPORTED and "refused" not in known.instead):
            return outcome
        if outcome.kind is Kind.PASS:
            return Outcome(Kind.FAIL, f"divergence no longer holds ({known.words}): the case passes")
        ours = known.applied(case)
        again = _attempt(lambda: self._run(ours, vector))
        if again.kind is Kind.PASS:
            return Outcome(Kind.DIVERGENCE, known.words)
        return Outcome(Kind.FAIL, f"differs, but not as {known.words}: {again.words}")

    def _run(self, case: Case, vector: int | None) -> None:
        whole = Part(case.data)
        vectors = whole.vectors()
        part = whole if vector is None else vectors[vector]
        label = case.id if vector is None else f"{case.id} {vector}"
        bench = Bench(self.world, label)
        if case.kind == "vectors":
            documents.run(bench, part, lambda key: _latest(vectors[: vector or 0], key))
        else:
            _WHOLE[case.kind](bench, part)
        unread = [*part.unread(), *(whole.unread() if part is not whole else [])]
        if unread:
            raise Unsupported(f"case key {', '.join(unread)}")


def _latest(earlier: list[Part], key: str) -> Any:
    return next((p.data[key] for p in reversed(earlier) if key in p.data), None)


def _attempt(run: Callable[[], None]) -> Outcome:
    try:
        run()
    except Unsupported as missing:
        return Outcome(Kind.UNSUPPORTED, str(missing))
    except UnsupportedError as missing:
        return Outcome(Kind.UNSUPPORTED, missing.what)
    except Mismatch as difference:
        return Outcome(Kind.FAIL, str(difference))
    except Exception as crash:
        first = (str(crash).splitlines() or [""])[0][:300]
        return Outcome(Kind.FAIL, f"{type(crash).__name__}: {first}")
    return Outcome(Kind.PASS)

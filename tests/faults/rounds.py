"""How each kind of fault is done to the jobs."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tests.faults.ground import Ground
from tests.faults.jobs import Job
from tests.faults.plan import Round
from tests.pipelines.processes import Process

__all__ = ["Player"]

PATIENCE = 300.0
_FIRE_SECONDS = 90.0


class Player:
    """Plays rounds on a ground. After a round its victims may still be away; the next one that needs them waits."""

    def __init__(self, ground: Ground, say: Callable[[str], None]) -> None:
        self._ground, self._say = ground, say
        self._user: threading.Thread | None = None
        self.users: list[str] = []
        """What users did, and what came of it."""
        self.kinds: dict[str, Callable[[Round, Job], object]] = {
            "kill all": lambda r, job: self._kill_all(r.kind, job),
            "kill Python": lambda r, job: self._kill(r.kind, job, job.running.pid),
            "kill JVM": lambda r, job: self._kill(r.kind, job, job.running.jvm()),
            "kill worker": self._kill_worker,
            "kill both jobs": self._kill_both,
            "failpoint: kill": self._failpoint,
            "failpoint: kill all": self._failpoint,
            "lost checkpoint": self._checkpoint,
            "old checkpoint": self._checkpoint,
            "broker": self._broker,
            "pause": self._pause,
            "zombie": self._zombie,
            "started twice": self._twice,
        }

    def play(self, this: Round) -> None:
        """One round, up to the blow. Raises TimeoutError when somebody does not come back."""
        job = self._ground.jobs[this.verb]
        both = this.kind in ("kill both jobs", "broker")
        for needed in self._ground.jobs.values() if both else [job]:
            self.recovered(needed)
        kept = self._ground.folder / "checkpoint-kept"
        if not kept.exists():
            shutil.copytree(self._ground.folder / "ingests", kept, dirs_exist_ok=True)
        if this.user:
            self._use(this.user)
        self._ground.rest(this.seconds)
        self.recovered(job)  # it may have ended by itself
        self.kinds[this.kind](this, job)

    def recovered(self, job: Job) -> None:
        """Wait until it has made progress after its last fault."""
        self._ground.until(lambda: not job.recovering, PATIENCE, f"{job.verb} makes progress")

    def _kill_all(self, kind: str, job: Job) -> None:
        job.is_hit(kind)
        job.running.kill()

    def _kill_both(self, this: Round, job: Job) -> None:
        for hit in self._ground.jobs.values():
            self._kill_all(this.kind, hit)

    def _kill(self, kind: str, job: Job, pid: int | None) -> None:
        """One process; the rest of the session must follow by itself."""
        if pid is None:
            return self._kill_all(kind, job)
        job.is_hit(kind)
        os.kill(pid, signal.SIGKILL)
        self._ground.until(job.must_end(job.running), PATIENCE, "the driver ends")

    def _kill_worker(self, this: Round, job: Job) -> None:
        """In the middle of a transaction, if there is one; Spark has the task done again, or ends."""
        hit = self._armed(job, "slot.before-commit", "pause")
        workers = job.running.workers()
        if hit is None or not workers:
            return self._kill_all(this.kind, job)
        job.is_hit(this.kind)
        process = job.running
        for pid in workers:
            os.kill(pid, signal.SIGKILL)
        hit.unlink()
        # Without its workers it ends, or goes on with new ones.
        mark = job.mark()
        self._ground.until(
            lambda: process.code is not None or job.mark().version > mark.version,
            PATIENCE,
            "it ends or goes on",
        )
        if process.code is None:
            self._kill_all(this.kind, job)

    def _failpoint(self, this: Round, job: Job) -> None:
        everybody = this.kind.endswith("all")
        passes = this.passes if this.place.startswith("slot.") else 0
        process = job.running
        hit = self._armed(job, this.place, f"{'pause' if everybody else 'kill'} after {passes}")
        kind = f"{this.kind} at {this.place}"
        if everybody or hit is None:
            return self._kill_all(kind, job)
        job.is_hit(kind)
        self._ground.until(job.must_end(process), PATIENCE, "the driver ends")

    def _armed(self, job: Job, place: str, action: str) -> Path | None:
        """Arm a failpoint and wait for it; None when it is not passed in time."""
        process = job.running
        hit = process.arm(place, action)
        deadline = time.monotonic() + _FIRE_SECONDS
        self._ground.until(
            lambda: hit.exists() or process.code is not None or time.monotonic() > deadline, PATIENCE, place
        )
        if hit.exists():
            return hit
        hit.with_suffix("").unlink(missing_ok=True)
        self._say(f"  {place} did not fire")
        return None

    def _checkpoint(self, this: Round, job: Job) -> None:
        self._kill_all(this.kind, job)
        checkpoint = self._ground.folder / f"{job.verb}s"
        shutil.rmtree(checkpoint, ignore_errors=True)
        if this.kind == "old checkpoint":
            kept = self._ground.folder / "checkpoint-kept"
            shutil.copytree(kept, checkpoint, dirs_exist_ok=True)
            shutil.rmtree(kept)

    def _broker(self, this: Round, job: Job) -> None:
        for hit in self._ground.jobs.values():
            hit.is_hit(this.kind)
        self._ground.broker.kill()
        self._ground.rest(this.length / 2)
        self._ground.broker.start()

    def _pause(self, this: Round, job: Job) -> None:
        process = job.running
        job.is_hit(this.kind)
        process.signal(signal.SIGSTOP)
        self._ground.rest(this.length)
        process.signal(signal.SIGCONT)
        self.recovered(job)
        self._kill_all("kill all", job)

    def _zombie(self, this: Round, job: Job) -> None:
        zombie = job.running
        zombie.signal(signal.SIGSTOP)
        job.is_hit(this.kind)
        job.process = job.started()
        self.recovered(job)
        zombie.signal(signal.SIGCONT)
        self._loser_ends(job, zombie)
        self._kill_all("kill all", job)

    def _twice(self, this: Round, job: Job) -> None:
        first, second = job.running, job.started()
        ended = job.must_end(second, 120)
        try:
            self._ground.until(lambda: first.code is not None or ended(), PATIENCE, "one of two ends")
        finally:
            loser = second if second.code is not None else first
            if job.process not in (None, first, second):
                job.running.kill()  # the supervisor was quick to replace the first
            job.process = first if loser is second else second
        self._loser_ends(job, loser)
        self._kill_all("kill all", job)

    def _loser_ends(self, job: Job, loser: Process) -> None:
        self._ground.until(job.must_end(loser), PATIENCE, "of two runs one ends")
        if not loser.code:
            job.leaks.append(f"{job.verb}: of two runs one ended with {loser.code}, as if all were well")
        job.left(loser)

    def _use(self, statement: str) -> None:
        """A user at work, beside the jobs; he may lose against them."""
        if self._user is not None:
            self._user.join()
        table = f"delta.`{self._ground.table}`"
        # It changes nothing, but rewrites rows: the fold is as before, and nothing of it may be published.
        text = {"OPTIMIZE": f"OPTIMIZE {table}", "UPDATE": f"UPDATE {table} SET seq = seq WHERE id % 3 = 0"}

        def work() -> None:
            try:
                self._ground.spark.sql(text[statement]).collect()
                self.users.append(statement)
            except Exception as lost:
                self.users.append(f"{statement} lost: {type(lost).__name__}")

        self._user = threading.Thread(target=work, daemon=True)
        self._user.start()

    def finish(self) -> None:
        """Everybody is back and well."""
        if self._user is not None:
            self._user.join()
        for job in self._ground.jobs.values():
            self.recovered(job)

"""Injects each kind of fault into the jobs."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tests.faults.carrier import read_errors
from tests.faults.documents import KEY_TYPES
from tests.faults.ground import Ground
from tests.faults.history import USERS_NAME, USERS_SHARE
from tests.faults.jobs import Carrier, Job
from tests.faults.lane import Lane
from tests.faults.nodes import kill
from tests.faults.plan import Blow

PATIENCE = 600.0
_FIRE_SECONDS = 30.0


class Player:
    """Plays faults on a ground. Victims may still be recovering afterwards; the next fault that needs them waits."""

    def __init__(self, ground: Ground, say: Callable[[str], None]) -> None:
        self._ground, self._say = ground, say
        self._user: threading.Thread | None = None
        self.users: list[str] = []
        """What users did, with the results."""
        self.kinds: dict[str, Callable[[Blow, Job], object]] = {
            "kill all": lambda b, job: self._kill_all(b.kind, job),
            "kill Python": lambda b, job: self._kill(b.kind, job, job.running.pid),
            "kill JVM": lambda b, job: self._kill(b.kind, job, job.running.jvm()),
            "kill worker": self._kill_worker,
            "kill both jobs": self._kill_both,
            "kill executor": self._kill_executor,
            "kill node": self._kill_node,
            "failpoint: raise": self._raise,
            "failpoint: kill": self._failpoint,
            "failpoint: kill all": self._failpoint,
            "lost checkpoint": self._checkpoint,
            "old checkpoint": self._checkpoint,
            "broker": self._broker,
            "pause": self._pause,
            "zombie": self._zombie,
            "started twice": self._twice,
        }

    def play(self, this: Blow) -> None:
        """Plays one fault up to its injection. Raises TimeoutError when a pipeline does not recover."""
        job = self._ground.jobs[this.verb]
        both = this.kind in ("kill both jobs", "kill node", "broker")
        for needed in self._ground.jobs.values() if both else [job]:
            self.recovered(needed)
        for lane in self._ground.lanes:
            for checkpoint in self._ground.checkpoints(lane, "ingest").values():
                if not (kept := _kept(checkpoint)).exists():
                    shutil.copytree(checkpoint, kept, dirs_exist_ok=True)
        if this.user:
            self._use(this.user, self._ground.lanes[this.passes % len(self._ground.lanes)])
        self._ground.rest(this.seconds)
        self.recovered(job)  # it may have ended without a fault
        self.kinds[this.kind](this, job)

    def recovered(self, job: Job) -> None:
        """Waits until each of its pipelines has made progress after its last fault."""
        self._ground.until(lambda: not job.recovering, PATIENCE, f"{job.verb} makes progress")

    def _kill_all(self, kind: str, job: Job, *, counts: bool = True) -> None:
        job.is_hit(kind, counts=counts)
        job.running.kill()

    def _kill_both(self, this: Blow, job: Job) -> None:
        for hit in self._ground.jobs.values():
            self._kill_all(this.kind, hit)

    def _kill(self, kind: str, job: Job, pid: int | None) -> None:
        """Kills one process; the rest of the session must end by itself."""
        if pid is None:
            return self._kill_all(kind, job)
        job.is_hit(kind)
        os.kill(pid, signal.SIGKILL)
        self._ground.until(job.must_end(job.running), PATIENCE, "the driver ends")

    def _kill_worker(self, this: Blow, job: Job) -> None:
        """Kills a worker, within a transaction if there is one; Spark retries the task, or the pipeline ends."""
        hit = self._armed(job, "shard.before-commit", "pause")
        process = job.running
        job.is_hit(this.kind)
        for pid in process.workers():
            kill(pid)
        if hit is not None:
            hit.unlink(missing_ok=True)

    def _kill_executor(self, this: Blow, job: Job) -> None:
        """Kills one of two executors, of a publish within a transaction; Spark runs its tasks again."""
        hit = self._armed(job, "shard.before-commit", "pause") if job.verb == "publish" else None
        process = job.running
        job.is_hit(this.kind)
        for pid in process.executors()[:1]:
            kill(pid)
        if hit is not None:
            hit.unlink(missing_ok=True)

    def _kill_node(self, this: Blow, job: Job) -> None:
        nodes = self._ground.world.nodes
        assert nodes is not None, "only a cluster has nodes"
        for hit in self._ground.jobs.values():
            hit.is_hit(this.kind)
        nodes.kill_node()

    def _raise(self, this: Blow, job: Job) -> None:
        """Lets one pipeline end with an error, without effect on the others."""
        process = job.running
        before = len(read_errors(process.folder))
        job.expecting = True
        hit = self._armed(job, this.place, f"raise after {this.passes}")
        if hit is not None:
            self._ground.until(
                lambda: len(read_errors(process.folder)) > before or process.code is not None,
                PATIENCE,
                "a pipeline ends",
            )
        errors = read_errors(process.folder)[before:]
        lanes = [e["lane"] for e in errors if "failpoint" in e["message"]] or [e["lane"] for e in errors]
        job.expecting = False
        if not lanes:
            return self._kill_all("kill all", job)
        job.is_hit(f"{this.kind} at {this.place}", lanes[:1])

    def _failpoint(self, this: Blow, job: Job) -> None:
        everybody = this.kind.endswith("all")
        process = job.running
        hit = self._armed(job, this.place, f"{'pause' if everybody else 'kill'} after {this.passes}")
        kind = f"{this.kind} at {this.place}"
        if hit is None:
            return self._kill_all("kill all", job)
        if everybody:
            return self._kill_all(kind, job)
        job.is_hit(kind)
        if this.place.startswith("shard."):  # in a worker, which Spark may replace
            self._ground.rest(1)
            if process.code is None:
                process.kill()
        self._ground.until(job.must_end(process), PATIENCE, "the driver ends")

    def _armed(self, job: Job, place: str, action: str) -> Path | None:
        """Arms a failpoint and waits for it; returns None when it is not passed in time."""
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

    def _checkpoint(self, this: Blow, job: Job) -> None:
        # An at-least-once publish has its progress only in its checkpoint.
        lanes = [x for x in self._ground.lanes if job.verb == "ingest" or x.exactly_once]
        checkpoints = {n: c for lane in lanes for n, c in self._ground.checkpoints(lane, job.verb).items()}
        job.is_hit(this.kind, [*checkpoints])
        job.is_hit("kill all", [name for name in job.files if name not in checkpoints])
        job.running.kill()
        for checkpoint in checkpoints.values():
            shutil.rmtree(checkpoint, ignore_errors=True)
            if this.kind == "old checkpoint":
                shutil.move(_kept(checkpoint), checkpoint)

    def _broker(self, this: Blow, job: Job) -> None:
        for hit in self._ground.jobs.values():
            hit.is_hit(this.kind)
        self._ground.world.broker.kill()
        self._ground.rest(this.length / 2)
        self._ground.world.broker.start()

    def _pause(self, this: Blow, job: Job) -> None:
        process = job.running
        job.is_hit(this.kind)
        process.signal(signal.SIGSTOP)
        self._ground.rest(this.length)
        process.signal(signal.SIGCONT)

    def _zombie(self, this: Blow, job: Job) -> None:
        zombie = job.running
        zombie.signal(signal.SIGSTOP)
        job.is_hit(this.kind)
        job.process = job.started()
        self.recovered(job)
        zombie.signal(signal.SIGCONT)
        self._loser_ends(job, zombie)

    def _twice(self, this: Blow, job: Job) -> None:
        """Starts a second run, which must end because the first one is running."""
        second = job.started()
        for name in job.files:
            job.rounds[name, this.kind] += 1
        self._loser_ends(job, second)

    def _loser_ends(self, job: Job, loser: Carrier) -> None:
        self._ground.until(job.must_end(loser), PATIENCE, "of two runs one ends")
        if not loser.code:
            job.leaks.append(f"{job.verb}: of two runs one ended with {loser.code}, as if all were well")
        job.left(loser)

    def _use(self, statement: str, lane: Lane) -> None:
        """Runs a statement of a user on a lane's tables concurrently with the jobs; it may fail with a conflict."""
        if self._user is not None:
            self._user.join()
        if statement == "RESTORE" and "quarantine" in lane.extras:
            return  # records that are read again are there again
        # The judge of a table without a key knows no user.
        of_rows = statement in ("WRITE", "RESTORE")
        paths = [self._ground.table(lane)] if of_rows else self._ground.tables(lane)
        tables = [f"delta.`{path}`" for path in paths]
        column = next(iter(KEY_TYPES[lane.key].columns))
        # UPDATE rewrites rows without changing them: the fold stays the same, and none of it may be published.
        text = {
            "OPTIMIZE": "OPTIMIZE {}",
            "UPDATE": f"UPDATE {{}} SET seq = seq WHERE hash({column}) % 3 = 0",
            "WRITE": f"UPDATE {{}} SET writer = '{USERS_NAME}' WHERE seq % {USERS_SHARE} = 0",
            "ADD COLUMN": f"ALTER TABLE {{}} ADD COLUMN note{len(self.users)} STRING",
            "RESTORE": f"RESTORE {{}} TO VERSION AS OF {self._some_versions_ago(lane)}",
        }

        def work() -> None:
            for table in tables:
                try:
                    self._ground.world.spark.sql(text[statement].format(table)).collect()
                    self.users.append(statement)
                except Exception as lost:
                    self.users.append(f"{statement} lost: {type(lost).__name__}")

        self._user = threading.Thread(target=work, daemon=True)
        self._user.start()

    def _some_versions_ago(self, lane: Lane) -> int:
        """A version that the publish has sent, as it must read the versions up to the RESTORE, too."""
        return max(1, self._ground.observers[lane.name].newest_version() - 2)

    def finish(self) -> None:
        """Waits until all pipelines have recovered."""
        if self._user is not None:
            self._user.join()
        for job in self._ground.jobs.values():
            self.recovered(job)


def _kept(checkpoint: Path) -> Path:
    """Where the state of a checkpoint is kept for `old checkpoint`."""
    return checkpoint.with_name(f"{checkpoint.name}-kept")

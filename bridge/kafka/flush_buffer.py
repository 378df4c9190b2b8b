"""`sink.buffer-flush.*`: the last record of each key, held for a while."""

from __future__ import annotations

import time
from collections.abc import Callable

from bridge.kafka.records import Record, Records

__all__ = ["FlushBuffer"]


class FlushBuffer:
    """Keeps the last record of each key, as Flink's ReducingUpsertWriter: `sink.buffer-flush.*`.

    Hands its records to `send`, in the order of their keys' last changes, when `max_rows` distinct keys are
    held or `interval_ms` have passed since it last did, and when `flush` is called. It looks at the clock
    with each record: no record waits longer than until the next one or the end of the batch.
    """

    def __init__(
        self,
        send: Callable[[Records], None],
        *,
        max_rows: int,
        interval_ms: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._send, self._max_rows, self._interval, self._clock = send, max_rows, interval_ms / 1000, clock
        self._pending: dict[tuple[str, bytes | None], Record] = {}
        self._last_flush = clock()

    def add(self, records: Records) -> None:
        """Take records in order; raises what `send` raises."""
        held, clock = self._pending, self._clock
        for record in records.rows():
            key = record[:2]
            held.pop(key, None)  # a changed key goes to the end: the order of last changes
            held[key] = record
            if len(held) >= self._max_rows or clock() - self._last_flush >= self._interval:
                self.flush()

    def flush(self) -> None:
        """Hand over what is held, if anything."""
        if self._pending:
            self._send(Records(*map(list, zip(*self._pending.values(), strict=True))))
            self._pending.clear()
        self._last_flush = self._clock()

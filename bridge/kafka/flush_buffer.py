"""Buffers records and sends the last one of each key: `sink.buffer-flush.*`."""

from __future__ import annotations

import time
from collections.abc import Callable

from bridge.kafka.records import Record, Records


class FlushBuffer:
    """Buffers the last record of each key, as Flink's ReducingUpsertWriter does.

    It passes the records to `send`, in the order of their keys' last changes, when it has `max_rows` distinct keys,
    when `interval_ms` have passed since the last flush, and when `flush` is called. It checks the clock with each
    record, so a record waits at most until the next one after the interval, or the end of the batch.
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
        """Add records in order; raises what `send` raises."""
        pending, clock = self._pending, self._clock
        for record in records.rows():
            key = record[:2]
            pending.pop(key, None)  # a changed key moves to the end
            pending[key] = record
            if len(pending) >= self._max_rows or clock() - self._last_flush >= self._interval:
                self.flush()

    def flush(self) -> None:
        """Send all buffered records."""
        if self._pending:
            topics, keys, values, timestamps, headers = map(list, zip(*self._pending.values(), strict=True))
            self._send(Records(topics, keys, values, timestamps, headers))
            self._pending.clear()
        self._last_flush = self._clock()

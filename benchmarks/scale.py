"""The sizes of all scenarios: of a normal run, of a full one, and of a small one that only tries them."""

from __future__ import annotations

from dataclasses import dataclass

SEED = 7
_NORMAL = 1_000_000


@dataclass(frozen=True)
class Scale:
    """The sizes of all scenarios."""

    records: int
    keys: int
    batch: int
    backlog: int
    backlog_keys: int
    deep_backlog: int
    """More records than one batch has by default; 0 for none."""
    tables: tuple[int, ...]
    """Rows of the tables for small batches, smallest first."""
    random_tables: tuple[int, ...]
    laid_tables: tuple[int, ...]
    """Rows of the tables with different layouts."""
    batches: tuple[int, ...]
    """Further batch sizes of the curve, beside `batch` and a single batch."""
    small_batches: int
    """The number of batches of a size into an existing table."""
    published: int
    stream_rate: int
    """Records a second of a stream into a table of `records` rows."""
    stream_seconds: int
    stream_rounds: int
    wide_batch: int
    wide_partitions: int
    rounds: int
    """How often the jobs beside the peers are played, in turn."""
    thorough: bool
    """Whether the slow recipe also runs on small tables and adjacent keys; otherwise only what fits in a short run."""

    @staticmethod
    def of(rows: int, *, full: bool, rounds: int = 3) -> Scale:
        tables = (rows, 20 * rows, 100 * rows) if full else (rows // 5, 2 * rows)
        return Scale(
            records=rows,
            keys=rows // 5,
            batch=rows // 10,
            backlog=5 * rows,
            backlog_keys=rows,
            deep_backlog=20 * rows if full else 0,
            tables=tables,
            random_tables=tables[:2] if full else tables[1:],
            laid_tables=tables[:2] if full else tables[-1:],
            batches=(rows // 3,) if full else (),
            small_batches=6 if full else 4,
            published=5 * rows if full else rows,
            stream_rate=max(10, rows // 200),
            stream_seconds=max(10, min(180 if full else 60, 180 * rows // _NORMAL)),
            stream_rounds=1,
            wide_batch=rows // 100,
            wide_partitions=1000 if rows >= _NORMAL else 100,
            rounds=rounds,
            thorough=full,
        )

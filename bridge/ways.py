"""How a way of doing a job says that it does not do it, so that a plainer way, with the same result, does.

There are several ways of reading, merging, encoding and sending (WAYS). A faster one is tried first. Where it does not
apply, or might give another result, it raises NotThisWay before it has changed anything. The reason is shown: in the
line of the batch, in its report and by `--explain`.
"""

from __future__ import annotations

from dataclasses import dataclass


class NotThisWay(Exception):
    """Why a way does not do the job: the end of a sentence, as in "read by spark (the key format is raw)"."""


def told(way: str, reason: object = "") -> str:
    """The name of the way that did a job and, in brackets, why a faster one did not."""
    return f"{way} ({reason})" if str(reason) else way


@dataclass(frozen=True)
class Way:
    """One way of doing a job. The plainest way of each job is the last one of its rows."""

    job: str
    name: str
    """The name in reports and, after a comma, what tells it from others of that name."""
    when: str
    object_stores: str
    """S3 and other stores: `yes`, or why not."""
    clusters: str
    equal: str = ""
    """The test that compares it with a plainer way; empty for the plainest one."""


_STORES = "S3 and Azure; on others the driver has no client"
_ANY = "yes"

WAYS = (
    Way(
        "read a topic",
        "consumer, fold",
        "tables with a PRIMARY KEY, formats that Arrow decodes",
        _ANY,
        _ANY,
        "pipelines/ingest/test_consumer_reader.py",
    ),
    Way(
        "read a topic",
        "consumer, files",
        "tables without one; tasks write their data files",
        _STORES,
        "object stores, and a disk that all machines have",
        "pipelines/ingest/test_append_reader.py",
    ),
    Way("read a topic", "spark", "all", _ANY, _ANY),
    Way(
        "apply a batch",
        "driver",
        "batches and touched files within `merge.max-batch` and `merge.max-touched`",
        _STORES,
        _ANY,
        "delta/test_merge_spark_histories.py",
    ),
    Way(
        "apply a batch",
        "files of consumers",
        "what `consumer, files` has written",
        _STORES,
        "as `consumer, files`",
        "delta/test_append_files.py",
    ),
    Way("apply a batch", "spark", "all: MERGE, or an append", _ANY, _ANY),
    Way(
        "read changes of a table",
        "driver",
        "ranges of at most 4 MiB and 100,000 rows",
        _STORES,
        _ANY,
        "delta/test_changed_files.py",
    ),
    Way(
        "read changes of a table",
        "spark, files that the log names",
        "up to 100 versions",
        "no: Spark would ask the store for each file before it reads it",
        "no: only a local disk",
        "delta/test_appended_files.py",
    ),
    Way("read changes of a table", "spark, by Delta", "all", _ANY, _ANY),
    Way(
        "send a range",
        "driver",
        "what the driver has read, at-least-once",
        _ANY,
        _ANY,
        "pipelines/publish/test_range_records_driver.py",
    ),
    Way(
        "send a range",
        "tasks, encoded by tasks",
        "json and raw, where no record is moved by its key",
        _ANY,
        _ANY,
        "arrow_formats/test_record_encoder.py",
    ),
    Way("send a range", "tasks, encoded by spark", "all", _ANY, _ANY),
    Way(
        "refresh a result",
        "driver",
        "plain aggregates of at most 8 MiB of added files",
        _STORES,
        _ANY,
        "pipelines/scripts/test_driver_groups_histories.py",
    ),
    Way(
        "refresh a result",
        "spark, from the added rows",
        "sources that only get rows",
        _ANY,
        _ANY,
        "pipelines/scripts/test_refresh_added_groups.py",
    ),
    Way("refresh a result", "spark, by part or whole", "all", _ANY, _ANY),
)
"""All ways of the bridge, of each job from the fastest to the plainest. A table on a local disk of one machine has all
of them. ARCHITECTURE.md shows the list."""

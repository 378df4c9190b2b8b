"""The verbs that look after a pipeline: how far it is, whether both sides are equal, what was kept aside."""

from __future__ import annotations

from json import dumps
from typing import TYPE_CHECKING, Annotated

import typer

from bridge import config
from bridge.cli import process
from bridge.cli.arguments import Conf, File, Json, Master, Quiet
from bridge.console import Screen
from bridge.errors import DefinitionError, DifferenceError

if TYPE_CHECKING:
    from bridge.pipelines.compare.row_comparison import Example

__all__ = ["maintain", "peek", "replay", "resync", "status", "verify"]

Direction = Annotated[str | None, typer.Option(help="ingest or publish; default: the one with progress.")]


def verify(
    file: File,
    direction: Direction = None,
    show_values: Annotated[
        bool, typer.Option("--show-values", help="Show both rows of the first keys that differ.")
    ] = False,
    quiet: Quiet = False,
    json: Json = False,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Prove that topic and table hold the same rows, while both go on changing. Exits 4 when they do not.

    Both are compared as they were at one offset of each partition and one version of the table.
    """
    _check_choice("--direction", direction, "ingest", "publish")
    screen, definition = Screen(quiet=quiet or json), config.load(file)
    from bridge.pipelines.compare.verify import verify as run

    with process.session(screen, definition, master, conf) as spark:
        proof = run(spark, definition, direction=direction, show_values=show_values)
    comparison = proof.comparison
    rows = {
        "topic": f"{comparison.topic_rows:,} rows  checksum {comparison.topic_checksum}",
        "table": f"{comparison.table_rows:,} rows  checksum {comparison.table_checksum}  version {proof.version}",
        "topic up to": proof.offsets.to_json(),
        "result": "equal" if proof.equal else "DIFFERENT",
    }
    if comparison.superseded:
        rows["not compared"] = (
            f"{comparison.superseded:,} keys whose records compaction may have taken meanwhile"
        )
    if comparison.buckets:
        rows["buckets that differ"] = ", ".join(f"{b.number}" for b in comparison.buckets)
    rows |= {example.key: _line(example, proof.version) for example in comparison.examples}
    title = f"{proof.direction} {definition.name}: fold(topic) == table?"
    screen.result(title, proof.as_dict(), rows=rows, json=json)
    if not proof.equal:
        raise DifferenceError(
            f"{comparison.missing_in_table:,} keys missing in the table, {comparison.missing_in_topic:,} missing in "
            f"the topic, {comparison.different:,} with different rows, {comparison.duplicate_keys:,} more than once; "
            f"for example {', '.join(e.key for e in comparison.examples)}"
        )


def resync(
    file: File,
    direction: Direction = None,
    missing: Annotated[
        str | None,
        typer.Option(
            help="delete or keep: rows that a topic lacks of which records have expired (ingest only)."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what it would do; write nothing.")
    ] = False,
    json: Json = False,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Heal a pipeline: find what differs between topic and table, and mend only that.

    ingest: the table is made equal to the topic as it is now, in one commit; `bridge ingest` goes on from there.
    publish: the topic is made equal to the table as it is now; `bridge publish` goes on from there.
    """
    _check_choice("--direction", direction, "ingest", "publish")
    _check_choice("--missing", missing, "delete", "keep")
    screen, definition = Screen(quiet=json), config.load(file)
    from bridge.pipelines.resync import table_to_topic, topic_to_table
    from bridge.pipelines.resync.report import direction_of

    with process.session(screen, definition, master, conf) as spark:
        if direction_of(spark, definition, direction) == "ingest":
            report = topic_to_table.resync(spark, definition, missing=missing, dry_run=dry_run)
        elif missing is not None:
            raise DefinitionError("--missing is for ingest: a publish has its rows in the table")
        else:
            report = table_to_topic.resync(spark, definition, dry_run=dry_run)
    did = "would do" if dry_run else "did"
    screen.result(f"what a resync of {definition.name} {did}", report.as_dict(), json=json)


def replay(
    file: File,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Also records older than delete.retention.ms: deletes may be forgotten."
        ),
    ] = False,
    json: Json = False,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Apply records that `bad-records: quarantine` kept aside and that can be read now.

    Correct their key and value in the quarantine table, or the DDL, then run this. A record never overtakes a newer one
    of its key. What still cannot be read stays aside.
    """
    screen, definition = Screen(quiet=json), config.load(file)
    from bridge.pipelines.ingest.replay import replay as run

    with process.session(screen, definition, master, conf) as spark:
        report = run(spark, definition, force=force).as_dict()
    screen.result(f"replay of {definition.name}", report, json=json)


def status(file: File, json: Json = False, master: Master = None, conf: Conf = None) -> None:
    """Show how far a pipeline has got and how much is left. Moves nothing."""
    screen, definition = Screen(quiet=json), config.load(file)
    from bridge.pipelines.operations.status import status as run

    with process.session(screen, definition, master, conf) as spark:
        report = run(spark, definition).as_dict()
    screen.result(f"status of {definition.name}", report, json=json)


def peek(
    file: File,
    limit: Annotated[int, typer.Option("--max", min=1, help="How many records at most.")] = 10,
    start: Annotated[
        str,
        typer.Option(
            "--from", help="earliest, an offset, a timestamp; latest: the newest records that are there."
        ),
    ] = "latest",
    key: Annotated[
        str | None,
        typer.Option(help="Only records of this key: its text, its only column's value, or its JSON."),
    ] = None,
    json: Json = False,
) -> None:
    """Print decoded records of the pipeline's topic, in the order of their timestamps. Starts no Spark, moves nothing.

    With --json each record is a line of JSON. Fields that the file names in `peek: {hide: ...}` are not shown.
    """
    screen, definition = Screen(), config.load(file)
    from bridge.peek import Start
    from bridge.peek import peek as run

    records = run(definition, start=Start.of(start), limit=limit, key=key)
    for record in records:
        screen.lines(dumps(record.as_dict(), ensure_ascii=False) if json else record.lines())
    if not json:
        screen.lines(f"{len(records)} records of {definition.topic.title}")


def maintain(
    file: File,
    forget_consumer: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="A publish that will not come back: VACUUM no longer waits for it."
        ),
    ] = None,
    json: Json = False,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """OPTIMIZE and VACUUM the table, but keep what a publish still needs.

    What is done says the section `maintenance`, by which an ingest does the same between its batches; without one it is
    both, and files are kept as long as the table's delta.deletedFileRetentionDuration says.
    """
    screen, definition = Screen(quiet=json), config.load(file)
    from bridge.pipelines.operations.maintain import maintain as run

    with process.session(screen, definition, master, conf) as spark:
        report = run(spark, definition, forget=forget_consumer).as_dict()
    screen.result(f"maintenance of {definition.delta}", report, json=json)


def _line(example: Example, version: int) -> str:
    topic = f"topic: {example.topic_position or 'no record'}"
    if example.topic_row is not None:
        topic += f" {example.topic_row}"
    table = f"table: version {version}"
    if example.table_row is not None:
        table += f" {example.table_row}"
    return f"{example.why.replace('_', ' ')}; {topic}; {table}"


def _check_choice(option: str, given: str | None, *legal: str) -> None:
    if given is not None and given not in legal:
        raise DefinitionError(f"{option} {given}: legal values are {', '.join(legal)}")

"""Defines the verbs that operate a pipeline: status, verify, resync, replay, peek and maintain."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict
from json import dumps
from typing import TYPE_CHECKING, Annotated

import typer

from bridge.cli import process
from bridge.cli.arguments import (
    Conf,
    Env,
    FileOrScript,
    Json,
    LogFormat,
    Master,
    Metrics,
    Quiet,
    refuse_address,
    seconds,
)
from bridge.cli.script_pipelines import InsertName, TableName, load_pipeline
from bridge.console import Screen
from bridge.definition import DeltaTarget
from bridge.errors import BridgeError, DefinitionError

if TYPE_CHECKING:
    from bridge.pipelines.compare.row_comparison import Example
    from bridge.pipelines.compare.verify import Proof


Direction = Annotated[str | None, typer.Option(help="ingest or publish; default: the one that has progress.")]


def verify(
    file: FileOrScript,
    insert: InsertName = None,
    table: TableName = None,
    direction: Direction = None,
    show_values: Annotated[
        bool, typer.Option("--show-values", help="Show both rows of the example keys.")
    ] = False,
    every: Annotated[
        str | None,
        typer.Option(metavar="INTERVAL", help="Verify again and again until Ctrl-C, with this pause: 1h."),
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            help="Add a row for each comparison to this Delta table, a path or a name in the catalog.",
        ),
    ] = None,
    quiet: Quiet = False,
    json: Json = False,
    metrics: Metrics = None,
    log_format: LogFormat = "text",
    master: Master = None,
    env: Env = None,
    conf: Conf = None,
) -> None:
    """Verify that topic and table hold the same rows. Exits with 4 when they differ.

    Compares both sides at fixed offsets and one table version, so it can run while both keep
    changing. With --every it goes on after a difference, and exits with 4 if the last comparison
    found one.
    """
    _check_choice("--direction", direction, "ingest", "publish")
    if every is None:
        refuse_address(metrics, "`bridge verify` without --every", ", or verify with --every")
    screen, definition = Screen(quiet=quiet or json), load_pipeline(file, insert, table)
    from bridge.pipelines.compare.reconciliation import reconcile

    pause = seconds("--every", every)
    with process.session(screen, definition, master, conf) as spark, ExitStack() as signals:
        stop = None if pause is None else signals.enter_context(process.stop_signals(screen))
        reconcile(
            spark,
            definition,
            direction=direction,
            show_values=show_values,
            ledger=None if ledger is None else _target(ledger),
            metrics=metrics,
            every_seconds=pause,
            stop=stop,
            compared=lambda proof: _show(screen, proof, json),
            failed=lambda error: screen.error("failed", str(error)),
        )


def _show(screen: Screen, proof: Proof, json: bool) -> None:
    comparison = proof.comparison
    rows = {
        "topic": f"{comparison.topic_rows:,} rows  checksum {comparison.topic_checksum}",
        "table": f"{comparison.table_rows:,} rows  checksum {comparison.table_checksum}  version {proof.version}",
        "topic up to": proof.offsets.to_json(),
        "result": "equal" if proof.equal else "DIFFERENT",
    }
    if comparison.superseded:
        rows["not compared"] = (
            f"{comparison.superseded:,} keys whose records may have been compacted during the comparison"
        )
    if comparison.buckets:
        rows["differing buckets"] = ", ".join(f"{b.number}" for b in comparison.buckets)
    rows |= {example.key: _line(example, proof.version) for example in comparison.examples}
    title = f"{proof.direction} {proof.pipeline}: fold(topic) == table?"
    screen.result(title, proof.as_dict(), rows=rows, json=json)


def _target(text: str) -> DeltaTarget:
    return DeltaTarget(path=text) if "/" in text else DeltaTarget(table=text)


def resync(
    file: FileOrScript,
    insert: InsertName = None,
    table: TableName = None,
    direction: Direction = None,
    missing: Annotated[
        str | None,
        typer.Option(
            help="delete or keep: rows without a record in the topic, when records have expired (ingest only)."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be repaired, without writing.")
    ] = False,
    json: Json = False,
    master: Master = None,
    env: Env = None,
    conf: Conf = None,
) -> None:
    """Compare topic and table, and repair only the rows that differ.

    ingest: makes the table equal to the current topic in one commit; `bridge ingest` continues from
    there.
    publish: makes the topic equal to the current table; `bridge publish` continues from there.
    """
    _check_choice("--direction", direction, "ingest", "publish")
    _check_choice("--missing", missing, "delete", "keep")
    screen, definition = Screen(quiet=json), load_pipeline(file, insert, table)
    from bridge.pipelines.resync import table_to_topic, topic_to_table
    from bridge.pipelines.resync.report import direction_of

    with process.session(screen, definition, master, conf) as spark:
        if direction_of(spark, definition, direction) == "ingest":
            report = topic_to_table.resync(spark, definition, missing=missing, dry_run=dry_run)
        elif missing is not None:
            raise DefinitionError(
                "--missing applies to ingest only: the rows of a publish are in its table; leave the option out"
            )
        else:
            report = table_to_topic.resync(spark, definition, dry_run=dry_run)
    title = f"resync of {definition.name}" + (", dry run" if dry_run else "")
    screen.result(title, asdict(report), json=json)


def replay(
    file: FileOrScript,
    table: TableName = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Also apply records older than delete.retention.ms, whose later tombstones may be gone.",
        ),
    ] = False,
    json: Json = False,
    master: Master = None,
    env: Env = None,
    conf: Conf = None,
) -> None:
    """Apply records of the quarantine table that can be decoded now.

    Correct their key and value in the quarantine table, or the DDL, before you run it. A record
    never replaces a newer record of its key. Records that still cannot be decoded stay in the
    quarantine table.
    """
    screen, definition = Screen(quiet=json), load_pipeline(file, None, table)
    from bridge.pipelines.ingest.replay import replay as run

    with process.session(screen, definition, master, conf) as spark:
        report = asdict(run(spark, definition, force=force))
    screen.result(f"replay of {definition.name}", report, json=json)


def status(
    file: FileOrScript,
    insert: InsertName = None,
    table: TableName = None,
    json: Json = False,
    master: Master = None,
    env: Env = None,
    conf: Conf = None,
) -> None:
    """Show the progress of a pipeline and what is pending. Changes nothing."""
    screen, definition = Screen(quiet=json), load_pipeline(file, insert, table)
    from bridge.pipelines.operations.status import status as run

    with process.session(screen, definition, master, conf) as spark:
        report = asdict(run(spark, definition))
    screen.result(f"status of {definition.name}", report, json=json)


def doctor(
    file: FileOrScript,
    insert: InsertName = None,
    table: TableName = None,
    direction: Direction = None,
    json: Json = False,
    master: Master = None,
    env: Env = None,
    conf: Conf = None,
) -> None:
    """Try all that a pipeline needs, and say what will fail and what to do. Changes nothing.

    Looks at brokers, topics, rights, the table, who else writes it, progress, retention times,
    executors and disks. Exits with 1 if something will fail.
    """
    _check_choice("--direction", direction, "ingest", "publish")
    screen, definition = Screen(quiet=json), load_pipeline(file, insert, table)
    from bridge.delta.table import exists
    from bridge.pipelines.operations.doctor import examine
    from bridge.pipelines.operations.surroundings import Outcome
    from bridge.pipelines.resync.report import direction_of

    with process.session(screen, definition, master, conf) as spark:
        if direction is None and not exists(spark, definition.delta):
            direction = "ingest"
        sends = direction_of(spark, definition, direction) == "publish"
        findings = examine(spark, definition, sends=sends)
    title = f"doctor {'publish' if sends else 'ingest'} {definition.name}"
    if json:
        screen.json([finding.as_dict() for finding in findings])
    else:
        styles = {Outcome.FINE: "green", Outcome.WARNING: "yellow", Outcome.FAILS: "bold red"}
        screen.grid(
            title,
            ("", "what", "found"),
            (((f.outcome.value, styles[f.outcome]), f.what, f.text) for f in findings),
        )
    failed = [finding for finding in findings if finding.outcome is Outcome.FAILS]
    if failed:
        raise BridgeError(f"{len(failed)} of {len(findings)} will fail: {', '.join(f.what for f in failed)}")


def peek(
    file: FileOrScript,
    insert: InsertName = None,
    table: TableName = None,
    limit: Annotated[int, typer.Option("--max", min=1, help="Maximum number of records.")] = 10,
    start: Annotated[
        str,
        typer.Option("--from", help="earliest, latest (the newest records), an offset or a timestamp."),
    ] = "latest",
    key: Annotated[
        str | None,
        typer.Option(
            help="Only records of this key, as text, as the value of its single column, or as JSON."
        ),
    ] = None,
    json: Json = False,
    env: Env = None,
) -> None:
    """Print decoded records of the pipeline's topic in timestamp order, without Spark. Changes nothing.

    With --json each record is one line of JSON. Fields listed in `peek: {hide: ...}` of the file
    are hidden.
    """
    screen, definition = Screen(), load_pipeline(file, insert, table)
    from bridge.peek import Start
    from bridge.peek import peek as run

    records = run(definition, start=Start.of(start), limit=limit, key=key)
    for record in records:
        screen.lines(dumps(record.as_dict(), ensure_ascii=False) if json else record.lines())
    if not json:
        screen.lines(f"{len(records)} records of {definition.topic.title}")


def maintain(
    file: FileOrScript,
    insert: InsertName = None,
    table: TableName = None,
    forget_consumer: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Remove the registration of a retired publish, so that VACUUM no longer keeps files for it.",
        ),
    ] = None,
    json: Json = False,
    master: Master = None,
    env: Env = None,
    conf: Conf = None,
) -> None:
    """Run OPTIMIZE and VACUUM on the table, but keep the files that a publish still needs.

    The `maintenance` section of the file configures both; an ingest applies it between batches,
    too. Without the section both run, and files are kept for the table's
    delta.deletedFileRetentionDuration.
    """
    screen, definition = Screen(quiet=json), load_pipeline(file, insert, table)
    from bridge.pipelines.operations.maintain import maintain as run

    with process.session(screen, definition, master, conf) as spark:
        report = asdict(run(spark, definition, forget=forget_consumer))
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

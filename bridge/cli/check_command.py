"""Defines `bridge check`, which runs a quality suite against a table."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
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
)
from bridge.cli.script_pipelines import InsertName, TableName, load_pipeline
from bridge.console import Screen
from bridge.definition import Definition, OnFailure
from bridge.errors import DefinitionError, QualityError

if TYPE_CHECKING:
    from bridge.pipelines.quality.check import Checked


_RESULT_CELLS = {
    "met": ("✓ met", "green"),
    "failed": ("✗ NOT MET", "bold red"),
    "warned": ("! not met", "yellow"),
    "unknown": ("? NOT EVALUATED", "bold yellow"),
}


def check(
    file: FileOrScript,
    since: Annotated[
        int | None,
        typer.Option(metavar="VERSION", min=0, help="Check only rows that changed after this table version."),
    ] = None,
    fail_on: Annotated[
        str | None,
        typer.Option(
            metavar="error|warn",
            help="Exit with 3 when a critical expectation fails (error), or a critical or warning one (warn). "
            "Default: error; with `quality: {on-failure: warn}` a failure never changes the exit code.",
        ),
    ] = None,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the result as JUnit XML, for CI.")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a summary in Markdown, for CI.")
    ] = None,
    data_docs: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Add the run to Great Expectations Data Docs in this folder."),
    ] = None,
    scheduled: Annotated[
        bool, typer.Option("--scheduled", help="Record the trigger of this run as `schedule`.")
    ] = False,
    init: Annotated[
        bool, typer.Option("--init", help="Write a first suite, which the table meets, and check nothing.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="With --init: replace an existing suite.")
    ] = False,
    export_dp: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the suite as `dp.expect` of Databricks' pipelines, as far as a condition on a row says the "
            "same, and check nothing. Needs no Spark.",
        ),
    ] = None,
    quiet: Quiet = False,
    json: Json = False,
    metrics: Metrics = None,
    log_format: LogFormat = "text",
    insert: InsertName = None,
    table: TableName = None,
    master: Master = None,
    env: Env = None,
    conf: Conf = None,
) -> None:
    """Run the quality suite on the table, store the results and write the HTML report. Exits with 3 on failure.

    With --since the check reads only the rows that changed, from the change data feed. Expectations
    that need the whole table (uniqueness, freshness, aggregates) are still evaluated on the whole
    table.
    """
    if fail_on not in (None, "error", "warn"):
        raise DefinitionError(f"--fail-on {fail_on}: legal values are error, warn")
    refuse_address(metrics, "`bridge check`")
    screen, definition = Screen(quiet=quiet or json), load_pipeline(file, insert, table)
    only = "--init" if init else "--export-dp"
    judged = since is not None or fail_on or junit or markdown or data_docs or scheduled
    if (init or export_dp) and (judged or (init and export_dp)):
        raise DefinitionError(
            f"{only} runs no check: leave out --since, --fail-on, --junit, --markdown, --data-docs, --scheduled"
            f"{' and --export-dp' if init else ''}"
        )
    if init:
        _init(screen, definition, overwrite, json, master, conf)
        return
    if overwrite:
        raise DefinitionError("--overwrite has no effect without --init")
    if export_dp:
        _export(screen, definition, export_dp, json)
        return
    from bridge.pipelines.quality.check import check as run

    with process.session(screen, definition, master, conf) as spark:
        with screen.busy(f"checking {definition.delta}"):
            trigger = "schedule" if scheduled else "check"
            checked = run(spark, definition, since=since, trigger=trigger, metrics=metrics)
        counts = failure_threshold(definition, fail_on)
        _write(checked, counts or "error", junit, markdown, data_docs)
        if json:
            screen.json(
                {"state": checked.verdict.state, **checked.verdict.as_dict(), "report": str(checked.report)}
            )
        else:
            _show(screen, definition, checked)
    if counts and (fatal := checked.verdict.fatal(counts)):
        raise QualityError(
            f"{len(fatal)} of {len(checked.verdict.expectations)} expectations failed; see {checked.report}"
        )


def _init(
    screen: Screen,
    definition: Definition,
    overwrite: bool,
    json: bool,
    master: str | None,
    conf: list[str] | None,
) -> None:
    from bridge.pipelines.quality.suite_proposal import propose

    with (
        process.session(screen, definition, master, conf) as spark,
        screen.busy(f"profiling {definition.delta}"),
    ):
        proposal = propose(spark, definition, overwrite=overwrite)
    rows = {
        "suite": str(proposal.suite),
        "expectations": f"{proposal.expectations:,}",
        "based on": f"{proposal.rows:,} rows, table version {proposal.version}",
    }
    if definition.quality is None:
        rows["next step"] = f"add `quality: {{suite: {proposal.suite}}}` to the pipeline file"
    screen.result(
        f"quality suite for {definition.name}",
        {**asdict(proposal), "suite": str(proposal.suite)},
        rows=rows,
        json=json,
    )


def _export(screen: Screen, definition: Definition, file: Path, json: bool) -> None:
    from bridge.delta.table_checks import sql_name
    from bridge.quality.dp_expect import export
    from bridge.quality.report import write
    from bridge.quality.suite import load

    if definition.quality is None:
        raise DefinitionError(
            f"{definition.name!r} has no `quality` section: add `quality: {{suite: expectations/NAME.json}}`"
        )
    suite = load(definition.quality.suite)
    text, left = export(suite, sql_name(definition.delta))
    write(text, file, "the file of expectations")
    rows = {
        "file": str(file),
        "exported": str(len(suite) - len(left)),
        "not exported": "\n".join(left) or "none",
    }
    counted = {"file": str(file), "exported": len(suite) - len(left), "not_exported": list(left)}
    screen.result(f"expectations of {suite.name}", counted, rows=rows, json=json)


def failure_threshold(definition: Definition, fail_on: str | None) -> str | None:
    """The severity threshold that fails the check, or None where nothing does. `--fail-on` overrides the file."""
    if fail_on is not None:
        return fail_on
    warns = definition.quality is not None and definition.quality.on_failure is OnFailure.WARN
    return None if warns else "error"


def _write(
    checked: Checked, fail_on: str, junit: Path | None, markdown: Path | None, docs: Path | None
) -> None:
    from bridge.quality.datadocs import data_docs
    from bridge.quality.junit import junit as as_junit
    from bridge.quality.markdown import markdown as as_markdown
    from bridge.quality.report import write

    verdict, history = checked.verdict, checked.history
    if junit is not None:
        write(as_junit(verdict, history, fail_on=fail_on), junit, "the JUnit file")
    if markdown is not None:
        write(as_markdown(verdict, history, checked.now), markdown, "the Markdown summary")
    if docs is not None:
        data_docs(docs, checked.suite, verdict)


def _show(screen: Screen, definition: Definition, checked: Checked) -> None:
    from bridge.quality.summary import headline, in_order, scope, state_of, trend_note

    verdict, history = checked.verdict, checked.history
    rows = []
    for o in in_order(verdict):
        cell = o.reason or o.observed or "no observed value"
        if o.evaluated_on == "changes":
            cell += " (changed rows)"
        if o.example_keys:
            keys = (", ".join(f"{n} = {v}" for n, v in key.items()) for key in o.example_keys[:3])
            cell += f"\ne.g. {'; '.join(keys)}"
        if note := trend_note(o, history, verdict.started_at):
            cell += f"\n{note}"
        word, style = _RESULT_CELLS[state_of(o)]
        severity = "" if o.success or o.severity == "critical" else f" ({o.severity})"
        rows.append(((word + severity, style), o.title, cell))
    screen.grid(
        f"quality of {definition.delta}, version {checked.version}",
        ("result", "expectation", "observed"),
        rows,
    )
    conclusion = f"{headline(verdict)}. {' '.join(scope(verdict, checked.now))}"
    screen.conclusion(conclusion)
    screen.conclusion(f"report: {checked.report}")

"""`bridge check`: the verb that judges a table by its quality suite."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bridge import config
from bridge.cli import process
from bridge.cli.arguments import Conf, File, Json, Master, Quiet
from bridge.console import Screen
from bridge.definition import Definition, OnFailure
from bridge.errors import DefinitionError, QualityError

if TYPE_CHECKING:
    from bridge.pipelines.quality.check import Checked

__all__ = ["check"]

_RESULT_CELLS = {
    "met": ("✓ met", "green"),
    "failed": ("✗ NOT MET", "bold red"),
    "warned": ("! not met", "yellow"),
    "unknown": ("? NOT EVALUATED", "bold yellow"),
}


def check(
    file: File,
    since: Annotated[
        int | None,
        typer.Option(metavar="VERSION", min=0, help="Judge only rows that changed after this table version."),
    ] = None,
    fail_on: Annotated[
        str | None,
        typer.Option(
            metavar="error|warn",
            help="Exit 3 when a critical expectation fails (error), or one of severity warning, too (warn). "
            "Default: error, or never under `quality: {on-failure: warn}`.",
        ),
    ] = None,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Write JUnit XML there, for CI.")] = None,
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a Markdown summary there, for CI.")
    ] = None,
    data_docs: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Add the run to Great Expectations' Data Docs in that folder."),
    ] = None,
    scheduled: Annotated[
        bool, typer.Option("--scheduled", help="Keep the results as those of a schedule.")
    ] = False,
    init: Annotated[
        bool, typer.Option("--init", help="Check nothing: write a suite that the table meets, to begin with.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="With --init: write over a suite that is there.")
    ] = False,
    quiet: Quiet = False,
    json: Json = False,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Run the quality suite on the table, keep the results, write the HTML report. Exits 3 when the table failed.

    With --since only rows that changed are judged, by the change data feed; whatever the changed rows alone cannot tell
    (uniqueness, freshness, aggregates) is judged on the whole table still.
    """
    if fail_on not in (None, "error", "warn"):
        raise DefinitionError(f"--fail-on {fail_on}: legal values are error, warn")
    screen, definition = Screen(quiet=quiet or json), config.load(file)
    if init:
        if since is not None or fail_on or junit or markdown or data_docs or scheduled:
            raise DefinitionError("--init checks nothing, so it goes with none of the options of a check")
        _init(screen, definition, overwrite, json, master, conf)
        return
    if overwrite:
        raise DefinitionError("--overwrite has no effect without --init")
    from bridge.pipelines.quality.check import check as run

    with process.session(screen, definition, master, conf) as spark:
        with screen.busy(f"checking {definition.delta}"):
            checked = run(spark, definition, since=since, trigger="schedule" if scheduled else "check")
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

    with process.session(screen, definition, master, conf) as spark, screen.busy("looking at the table"):
        proposal = propose(spark, definition, overwrite=overwrite)
    rows = {
        "suite": str(proposal.suite),
        "expectations": f"{proposal.expectations:,}",
        "made from": f"{proposal.rows:,} rows, table version {proposal.version}",
    }
    if definition.quality is None:
        rows["now add"] = f"quality: {{suite: {proposal.suite}}} to the pipeline file"
    screen.result(
        f"a suite for {definition.name}",
        {**asdict(proposal), "suite": str(proposal.suite)},
        rows=rows,
        json=json,
    )


def failure_threshold(definition: Definition, fail_on: str | None) -> str | None:
    """What fails the check; None for nothing. The command line wins over the pipeline file."""
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
        cell = o.reason or o.observed or "not shown"
        if o.evaluated_on == "changes":
            cell += " (changed rows)"
        if o.example_keys:
            keys = (", ".join(f"{n} = {v}" for n, v in key.items()) for key in o.example_keys[:3])
            cell += f"\nfor example {'; '.join(keys)}"
        if note := trend_note(o, history, verdict.started_at):
            cell += f"\n{note}"
        word, style = _RESULT_CELLS[state_of(o)]
        severity = "" if o.success or o.severity == "critical" else f" ({o.severity})"
        rows.append(((word + severity, style), o.title, cell))
    screen.grid(
        f"quality of {definition.delta}, version {checked.version}", ("result", "expectation", "found"), rows
    )
    conclusion = f"{headline(verdict)}. {' '.join(scope(verdict, checked.now))}"
    screen.out.print(conclusion, markup=False)
    screen.out.print(f"report: {checked.report}", markup=False)

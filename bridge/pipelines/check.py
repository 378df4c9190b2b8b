"""Delta -quality suite-> verdict and report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from bridge.definition import Definition
from bridge.delta import feed
from bridge.delta.progress import read_progress
from bridge.errors import DefinitionError
from bridge.pipelines.preflight import publish_table
from bridge.quality import report, suite
from bridge.quality.run import Verdict, run

__all__ = ["Checked", "check"]


@dataclass(frozen=True)
class Checked:
    """The verdict and where its report was written."""

    verdict: Verdict
    version: int
    report: Path


def check(spark: SparkSession, definition: Definition) -> Checked:
    """Run the pipeline's suite over the newest version of its table and write the HTML report.

    The version is fixed before the first expectation runs, so all of them judge the same rows. Raises
    DefinitionError without a `quality` section; what a failure means is the caller's matter (`on-failure`).
    """
    quality = definition.quality
    if quality is None:
        raise DefinitionError(
            f"{definition.name!r} has no `quality` section: add `quality: {{suite: expectations/NAME.json}}`"
        )
    expectations = suite.load(quality.suite)
    table = publish_table(spark, definition)
    version = feed.latest_version(table)
    rows = feed.snapshot(table, version).select(*[f"`{n.replace('`', '``')}`" for n in table.columns])
    verdict = run(rows, expectations, key=definition.primary_key)
    progress = read_progress(table, definition.name)
    facts = {
        "pipeline": definition.name,
        "topic": ", ".join(definition.topic.names),
        "table": str(definition.delta),
        "table version": str(version),
    }
    if progress is not None:
        facts["ingested up to"] = "\n".join(f"{t}-{p}: {o}" for t, p, o in progress[0].offsets)
    where = quality.report or definition.base / "reports" / f"{definition.name}.html"
    report.write_report(verdict, facts, where)
    return Checked(verdict, version, where)

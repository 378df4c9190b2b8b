"""Delta -quality suite-> verdict and report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from bridge.columns import col
from bridge.definition import Definition
from bridge.delta import feed
from bridge.delta.failures import reading
from bridge.errors import DefinitionError
from bridge.pipelines.preflight import ingested, whole_table
from bridge.quality import report, suite
from bridge.quality.run import Subject, Verdict, run

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
    table = whole_table(spark, definition)
    version, followed = feed.latest_version(table), ingested(table, definition)
    subject = Subject(
        pipeline=definition.name,
        topic=definition.topic.title,
        table=str(table),
        version=version,
        offsets=followed[0].offsets if followed else None,
    )
    with reading(table, version, version):
        rows = (
            table.read({"versionAsOf": str(version)}).select(*(col(name) for name in table.columns)).persist()
        )
        try:
            verdict = run(rows, expectations, key=definition.primary_key, subject=subject)
        finally:
            rows.unpersist()
    where = quality.report or definition.base / "reports" / f"{definition.name}.html"
    report.write_report(verdict, {}, where)
    return Checked(verdict, version, where)

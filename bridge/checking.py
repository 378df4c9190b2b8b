"""`bridge check`: the verb that judges a table by its quality suite."""

from __future__ import annotations

from bridge import config, process
from bridge.arguments import Conf, File, Json, Master, Quiet
from bridge.console import Screen
from bridge.definition import OnFailure
from bridge.errors import QualityError

__all__ = ["check"]


def check(
    file: File, quiet: Quiet = False, json: Json = False, master: Master = None, conf: Conf = None
) -> None:
    """Run the quality suite on the table and write the HTML report. Exits 3 when an expectation failed."""
    screen, definition = Screen(quiet=quiet or json), config.load(file)
    from bridge.pipelines.check import check as run
    from bridge.quality.report import to_json

    with process.session(screen, definition, master, conf) as spark:
        checked = run(spark, definition)
    verdict = checked.verdict
    if json:
        screen.json(to_json(verdict))
    else:
        rows = {o.title: ("ok" if o.success else f"FAILED: {o.observed}") for o in verdict.expectations}
        screen.table(f"quality of {definition.delta}, version {checked.version}", rows)
        screen.out.print(f"report: {checked.report}", markup=False)
    failed = [o.title for o in verdict.expectations if not o.success]
    if failed and definition.quality and definition.quality.on_failure is OnFailure.FAIL:
        raise QualityError(
            f"{len(failed)} of {len(verdict.expectations)} expectations failed; see {checked.report}"
        )

"""Reads from the table of quality results how many expectations each run did not meet: with delta-rs, without Spark."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

from bridge.definition import Definition
from bridge.errors import TableError
from bridge.log_layout import log_folder
from bridge.store_options import file_options
from bridge.ways import NotThisWay

_COLUMNS = ["run_id", "started", "severity", "success"]


@dataclass(frozen=True)
class QualityRun:
    """One run of a suite, or one batch of a gate."""

    at_ms: int
    critical: int = 0
    """Expectations of that severity that are not met."""
    warning: int = 0
    info: int = 0
    expectations: int = 0


def quality_runs(definition: Definition, since_ms: int) -> list[QualityRun] | None:
    """The runs of the pipeline since that time, oldest first; None where no results are stored.

    Raises NotThisWay for a table of a catalog, TableError for one that cannot be read.
    """
    if definition.quality is None:
        return None
    path = definition.quality.results.path
    if path is None:
        raise NotThisWay("quality.results names a table of a catalog, which only Spark finds")
    if "://" not in path and not Path(log_folder(path)).is_dir():
        return None
    import pyarrow.compute as pc
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError, TableNotFoundError

    since = datetime.fromtimestamp(since_ms / 1000, timezone.utc)
    wanted = (pc.field("pipeline") == definition.name) & (pc.field("started") >= since)
    try:
        dataset = DeltaTable(path, storage_options=file_options(path)).to_pyarrow_dataset()
        rows = dataset.to_table(columns=_COLUMNS, filter=wanted).to_pylist()
    except TableNotFoundError:
        return None
    except (DeltaError, OSError, ValueError) as failed:
        raise TableError(f"quality results {path} cannot be read ({type(failed).__name__})") from failed
    runs: dict[str, QualityRun] = {}
    for row in rows:
        run = runs.get(row["run_id"]) or QualityRun(int(row["started"].timestamp() * 1000))
        run = replace(run, expectations=run.expectations + 1)
        if not row["success"]:
            severity = row["severity"] if row["severity"] in ("critical", "warning") else "info"
            run = replace(run, **{severity: getattr(run, severity) + 1})
        runs[row["run_id"]] = run
    return sorted(runs.values(), key=lambda run: run.at_ms)

"""Tables beside the table of a pipeline, which have its name or path and a suffix."""

from __future__ import annotations

from bridge.definition import DeltaTarget


def side_table(target: DeltaTarget, suffix: str) -> DeltaTarget:
    """Returns the table whose name or path is that of `target` with `suffix` appended."""
    if target.table is not None:
        return DeltaTarget(table=f"{target.table}{suffix}")
    return DeltaTarget(str(target.path).rstrip("/") + suffix)

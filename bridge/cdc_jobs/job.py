"""What a job comes to: pipelines and a script of the bridge. Nothing here is executed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bridge.config.script_state import for_commands
from bridge.definition import Definition
from bridge.metrics.monitoring import NOWHERE, Monitoring
from bridge.sql import Script
from bridge.sql import as_json as script_json
from bridge.sql import as_rows as script_rows


def source_name(title: str) -> str:
    """Returns the name that a table of the source has in the script, apart from those of the sink."""
    return f"source_{title}"


@dataclass(frozen=True)
class JobTable:
    """A table of the source, the table of the sink that it goes to, and that one's topic."""

    source: str
    sink: str
    topic: str
    key: tuple[str, ...]
    place: str
    """The path of the Delta table, or the topic that is read."""
    is_direct: bool
    """True if its changes are published as they are, without a query and a state."""


@dataclass(frozen=True)
class Job:
    """A job that is accepted."""

    name: str
    file: str
    folder: str
    """The folder of all state of this job."""
    source_type: str
    sink_type: str
    tables: tuple[JobTable, ...]
    publishes: tuple[Definition, ...]
    """The publishes of tables that are sent as they are, in the order of `tables`."""
    script: Script | None
    """The script of all other tables; None if there are none."""
    monitoring: Monitoring = NOWHERE
    warnings: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """The folders that a run reads and writes."""
        deltas = (table.place for table in self.tables if self.source_type == "delta")
        return (self.folder, *dict.fromkeys(deltas))

    def checked(self, definition: Definition) -> Definition:
        """A publish of this job for commands: with the suite expectations/NAME.json beside the job, and with the job's
        events, alerts, traces and lineage."""
        return for_commands(definition, self.folder, self.monitoring)


def as_rows(job: Job) -> dict[str, str]:
    """Returns the tables of a job, and its script, as rows of two columns. Nothing in them is secret."""
    rows = {"source": job.source_type, "sink": job.sink_type}
    for table in job.tables:
        key = f", key ({', '.join(table.key)})" if table.key else ", no key"
        how = "its changes as they are" if table.is_direct else "through the script"
        rows[f"table {table.source}"] = (
            rows.get(f"table {table.source}", f"{table.place}{key}")
            + f"; to topic {table.topic} as {table.sink}, {how}"
        )
    for definition in job.publishes:
        topic = definition.topic
        rows[f"publish {definition.name}"] = (
            f"{topic.connector} {topic.value.name}, {topic.sink.delivery_guarantee.value}, "
            f"begins at {definition.publish.start.mode}"
        )
    if job.script is not None:
        rows |= {f"script: {k}": v for k, v in script_rows(job.script).items() if not k.startswith("warning")}
    return rows | {f"warning {n}": text for n, text in enumerate(job.warnings, 1)}


def as_json(job: Job) -> dict[str, Any]:
    """Returns the job as values of JSON."""
    return {
        "name": job.name,
        "file": job.file,
        "source": job.source_type,
        "sink": job.sink_type,
        "tables": [
            {
                "source": table.source,
                "sink": table.sink,
                "topic": table.topic,
                "primary_key": list(table.key),
                "place": table.place,
                "direct": table.is_direct,
            }
            for table in job.tables
        ],
        "publishes": [
            {
                "name": definition.name,
                "table": str(definition.delta),
                "checkpoint": definition.run.checkpoint,
                "options": {key: str(value) for key, value in definition.topic.options.items()},
                "headers": dict(definition.topic.sink.headers),
            }
            for definition in job.publishes
        ],
        "script": None if job.script is None else script_json(job.script),
        "warnings": list(job.warnings),
    }

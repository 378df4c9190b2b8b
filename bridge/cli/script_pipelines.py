"""Gives the verbs of a pipeline one of a script: the publish of an INSERT, or the ingest of a topic that it reads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated

import typer

from bridge import config
from bridge.cdc_jobs import Job, is_job, load_job
from bridge.cdc_jobs.job import source_name
from bridge.definition import Definition
from bridge.errors import DefinitionError
from bridge.sql import Script, load_script

if TYPE_CHECKING:
    from bridge.pipelines.scripts.state import ScriptState


InsertName = Annotated[
    str | None,
    typer.Option("--insert", metavar="NAME", help="Of a script: the INSERT, by the name of its sink."),
]
TableName = Annotated[
    str | None,
    typer.Option("--table", metavar="NAME", help="Of a script: a topic that it reads, by its table."),
]


def is_script(file: str) -> bool:
    """Whether a file is a script in Flink SQL, and not a pipeline file."""
    return PurePosixPath(file).suffix.lower() == ".sql"


def load_pipeline(file: str, insert: str | None, table: str | None) -> Definition:
    """Loads a pipeline file, or one pipeline of a script; without a name, the only INSERT into a topic.

    A job of Flink CDC is like a script: `insert` is the id of a table of its sink, `table` that of a topic. Raises
    DefinitionError for names that the script or job does not have, and for names given with a pipeline file.
    """
    if is_job(file):
        return _of_job(load_job(file), insert, table)
    if not is_script(file):
        if insert is not None or table is not None:
            raise DefinitionError(f"--insert and --table are for scripts; {file} is a pipeline file")
        return config.load(file)
    return _of_script(load_script(file), insert, table)


def _of_script(script: Script, insert: str | None, table: str | None) -> Definition:
    from bridge.pipelines.scripts.state import ScriptState

    if insert is not None and table is not None:
        raise DefinitionError("--insert and --table name two pipelines; give one of them")
    state = ScriptState(script)
    return state.checked(_ingest(state, table) if table is not None else _publish(state, insert))


def _of_job(job: Job, insert: str | None, table: str | None) -> Definition:
    """Returns the publish of a table of the sink, or the ingest of a topic that the job reads."""
    names = [one.sink for one in job.tables]
    direct = [one.sink for one in job.tables if one.is_direct]
    topics = [one.source for one in job.tables] if job.source_type == "kafka" else []
    script = None if job.script is None else replace(job.script, monitoring=job.monitoring)
    if table is not None:
        if script is None or table not in topics:
            legal = ", ".join(dict.fromkeys(topics)) or "none"
            raise DefinitionError(f"--table {table}: the job reads no topic by that name; it reads {legal}")
        return _of_script(script, insert, source_name(table))
    if insert is None and len(names) == 1:
        insert = names[0]
    if insert is None:
        raise DefinitionError(f"{job.file}: name a table of the sink with --insert: {', '.join(names)}")
    if insert in direct:
        return job.checked(job.publishes[direct.index(insert)])
    if script is None or insert not in names:
        raise DefinitionError(
            f"--insert {insert}: the job has no such table of the sink; it has {', '.join(names)}"
        )
    return _of_script(script, insert, None)


def _ingest(state: ScriptState, name: str) -> Definition:
    pipelines = {source.name: state.ingest(state.tables[source.name]) for source in state.script.sources}
    found = pipelines.get(name)
    if found is None:
        legal = ", ".join(n for n, definition in pipelines.items() if definition is not None) or "none"
        raise DefinitionError(f"--table {name}: the script reads no topic by that name; it reads {legal}")
    return found


def _publish(state: ScriptState, name: str | None) -> Definition:
    sent = state.publishes
    if name is None and len(sent) == 1:
        return next(iter(sent.values()))
    legal = ", ".join(sent) or "none"
    if name is None:
        raise DefinitionError(
            f"{state.script.file}: name an INSERT with --insert, or a topic with --table: {legal}"
        )
    if name not in sent:
        raise DefinitionError(
            f"--insert {name}: the script has no INSERT into a topic by that name; it has {legal}"
        )
    return sent[name]

"""Gives the verbs of a pipeline one of a script: the publish of an INSERT, or the ingest of a topic that it reads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bridge import config
from bridge.definition import Definition
from bridge.errors import DefinitionError
from bridge.sql import load_script

if TYPE_CHECKING:
    from bridge.pipelines.scripts.state import ScriptState

__all__ = ["InsertName", "TableName", "is_script", "load_pipeline"]

InsertName = Annotated[
    str | None,
    typer.Option("--insert", metavar="NAME", help="Of a script: the INSERT, by the name of its sink."),
]
TableName = Annotated[
    str | None,
    typer.Option("--table", metavar="NAME", help="Of a script: a topic that it reads, by its table."),
]


def is_script(file: Path) -> bool:
    """Whether a file is a script in Flink SQL, and not a pipeline file."""
    return file.suffix.lower() == ".sql"


def load_pipeline(file: Path, insert: str | None, table: str | None) -> Definition:
    """Loads a pipeline file, or one pipeline of a script; without a name, the only INSERT into a topic.

    Raises DefinitionError for names that the script does not have, and for names given with a pipeline file.
    """
    if not is_script(file):
        if insert is not None or table is not None:
            raise DefinitionError(f"--insert and --table are for scripts; {file} is a pipeline file")
        return config.load(file)
    from bridge.pipelines.scripts.state import ScriptState

    if insert is not None and table is not None:
        raise DefinitionError("--insert and --table name two pipelines; give one of them")
    state = ScriptState(load_script(file))
    return state.checked(_ingest(state, table) if table is not None else _publish(state, insert))


def _ingest(state: ScriptState, name: str) -> Definition:
    pipelines = {source.name: state.ingest(state.tables[source.name]) for source in state.script.sources}
    found = pipelines.get(name)
    if found is None:
        legal = ", ".join(n for n, definition in pipelines.items() if definition is not None) or "none"
        raise DefinitionError(f"--table {name}: the script reads no topic by that name; it reads {legal}")
    return found


def _publish(state: ScriptState, name: str | None) -> Definition:
    pipelines = {plan.name: state.publish(plan) for plan in state.script.inserts}
    sent = {n: definition for n, definition in pipelines.items() if definition is not None}
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

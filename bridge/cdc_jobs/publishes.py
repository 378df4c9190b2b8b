"""Tables that are sent as they are: a Delta table and its topic as a pipeline, which `publish` runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bridge.bridge_folders import safe_name
from bridge.cdc_jobs.references import References
from bridge.cdc_jobs.routes import Routed
from bridge.cdc_jobs.script_text import ScriptText, create_table
from bridge.cdc_jobs.sinks import JobSinks
from bridge.cdc_jobs.transforms import Transformed
from bridge.config.publish_rules import check_publication, refuse_unpublishable
from bridge.config.script_state import state_of
from bridge.config.storage_locations import Overlap, refuse_overlaps, storage_locations
from bridge.config.yaml_errors import located
from bridge.config.yaml_tree import Document
from bridge.ddl import parse
from bridge.definition import Definition, DeltaTarget, Publish, PublishStart, Run, Topic, TopicCreation
from bridge.errors import DdlError, DefinitionError, OptionError, UnsupportedError
from bridge.sql.connectors import resolve_table


@dataclass(frozen=True)
class JobPublishes:
    """Makes the pipelines of one job. `state` is its folder as it is written."""

    document: Document
    references: References
    sinks: JobSinks
    job: str
    state: str | None
    base: str
    step_timeout_seconds: float

    @property
    def folder(self) -> str:
        """The folder of all state of the job, which is that of its script, too."""
        return state_of(self.base, self.state, self.job)

    def definition(self, one: Transformed, route: Routed, topic: str, start: PublishStart) -> Definition:
        """Returns the publish of a Delta table. Columns that the table gets while it runs are sent, too.

        Raises DefinitionError with the position in the file; OptionError for options of the sink.
        """
        assert one.table.delta is not None
        require_key(self.document, self.sinks, one)
        sink = ".".join(route.sink)
        declared, warnings = self._topic(one, sink, topic)
        resolved = self.sinks.written(declared, route.sink, one.key)
        name = safe_name(sink)
        definition = Definition(
            f"{safe_name(self.job)}.{name}",
            self.base,
            resolved,
            DeltaTarget(path=one.table.delta.path),
            Run(f"{self.folder}/checkpoints/{name}", step_timeout_seconds=self.step_timeout_seconds),
            publish=Publish(start, carry=True),
            warnings=warnings,
        )
        try:
            check_publication(definition.publish, resolved)
            refuse_unpublishable(resolved)
            refuse_overlaps(storage_locations(definition))
        except Overlap as error:
            where = self.document.where(("pipeline", "bridge.state"))
            raise DefinitionError(f"{where}: {error}") from None
        except (DefinitionError, OptionError) as error:
            raise located(self.document, ("sink",), error) from None
        return definition

    def _topic(self, one: Transformed, sink: str, topic: str) -> tuple[Topic, tuple[str, ...]]:
        """Returns the topic as the options of the sink say, and warnings about them."""
        assert one.table.delta is not None
        options = self.sinks.options(tuple(sink.split(".")), topic, one.key)
        text = ScriptText(self.document)
        text.add(create_table(sink, one.table.delta.columns, one.key, options), ("sink",))
        try:
            ddl = parse(text.text, self.document.file)
        except DdlError as error:
            raise text.located(error) from None
        values = {
            key: self.references.value(value, self.document.where(("sink", key)))
            for key, value in ddl.options.items()
        }
        try:
            table = resolve_table(replace(ddl, options=values), self.base)
        except (OptionError, UnsupportedError) as error:
            raise text.option_error(error, ("sink",)) from None
        assert table.topic is not None
        creation = TopicCreation(config={"cleanup.policy": "compact"} if table.topic.is_upsert else {})
        return replace(table.topic, create=creation), table.warnings


def require_key(document: Document, sinks: JobSinks, one: Transformed) -> None:
    """Raises DefinitionError for a table without a key if the sink needs one."""
    if one.key or sinks.values["type"] != "upsert-kafka":
        return
    if one.table.delta is not None:
        way = f"primary-keys: {one.table.title}:{_guess(one.table.names)}, as Delta tables have no key"
        place = document.where(("source", "primary-keys"))
    else:
        way = "PRIMARY KEY (...) NOT ENFORCED in its CREATE TABLE"
        place = document.where(("source", "ddl"))
    raise DefinitionError(
        f"{place}: upsert-kafka needs the key of table {one.table.title}; write {way}, or primary-keys in its "
        "transform rule"
    )


def _guess(names: Sequence[str]) -> str:
    return next((name for name in names if name.lower() == "id"), names[0])

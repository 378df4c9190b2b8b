"""Where a script keeps its state, and the pipelines that fill and send it.

    <state>/<script>/sources/<table>       rows of a topic that the script reads, kept by an ingest
    <state>/<script>/results/<insert>      rows of an INSERT whose sink is a topic, sent by a publish; or those of all
                                           INSERTs into one topic that write columns of their own
    .../<table or insert>_quarantine       records and rows that were left out, with bridge.bad-records = quarantine;
                                           a Delta sink has its quarantine beside it
    <state>/<script>/checkpoints/...       working files of these ingests and publishes
    <state>/<script>/quality               results of `bridge check`
    <state>/<script>/script.lease.json     which run of the script is at work

Every table is an ordinary Delta table with a change data feed, which anyone may read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from bridge.bridge_folders import QUARANTINE_SUFFIX, safe_name
from bridge.config.script_state import for_commands, side_table, state_of
from bridge.definition import BadRecords, Definition, DeltaTarget, Publish, Run, Topic, TopicCreation
from bridge.metrics import RunName
from bridge.sql import InsertPlan, Script
from bridge.sql.connectors import Table
from bridge.sql.positions import POSITION_COLUMNS


@dataclass(frozen=True)
class ScriptState:
    """The tables and pipelines of one script. Reads and writes nothing."""

    script: Script
    keeping: frozenset[str] = frozenset()
    """The sources whose states keep the positions of records beside those that must; see `source_tables`."""

    @property
    def name(self) -> str:
        """The script's name as a part of paths and of names of pipelines."""
        return safe_name(self.script.name)

    @property
    def folder(self) -> str:
        """The folder of all state of this script."""
        return state_of(self.script.base, self.script.state, self.script.name)

    @cached_property
    def tables(self) -> Mapping[str, Table]:
        """The tables of the script by name."""
        return {table.name: table for table in self.script.tables}

    def source_target(self, table: Table) -> DeltaTarget:
        """The Delta table that has the rows of a source: its own one, or the state of its topic."""
        return table.delta or replace(table.changes, path=f"{self.folder}/sources/{safe_name(table.name)}")

    def ingest(self, table: Table) -> Definition | None:
        """The pipeline that keeps the state of a source; None for a Delta table, which is its own state."""
        if table.topic is None:
            return None
        topic = table.topic
        needed = (self._needs_positions(plan, table) for plan in self.script.inserts)
        if table.name in self.keeping or any(needed):
            columns = (*topic.schema.columns, *POSITION_COLUMNS)
            topic = replace(topic, schema=replace(topic.schema, columns=columns))
        found = self._pipeline(f"sources-{safe_name(table.name)}", topic, self.source_target(table))
        return replace(
            found, bad_records=self.script.bad_records, quarantine=self._quarantine(self.source_target(table))
        )

    def quarantine(self, plan: InsertPlan) -> DeltaTarget | None:
        """The table of the rows that an INSERT leaves out; None if they are not quarantined."""
        return self._quarantine(self._whole_target(plan))

    def _quarantine(self, target: DeltaTarget) -> DeltaTarget | None:
        quarantines = self.script.bad_records is BadRecords.QUARANTINE
        return side_table(target, QUARANTINE_SUFFIX) if quarantines else None

    def _needs_positions(self, plan: InsertPlan, table: Table) -> bool:
        """Whether an INSERT asks for the position of a row's record, or for its partition: for the watermark."""
        times = plan.windows.event_times if plan.windows is not None else ()
        return table.name in plan.positioned or any(time.source == table.name for time in times)

    def result_name(self, plan: InsertPlan) -> str:
        """The pipeline that writes the result: it owns the table, and its progress is that of the INSERT."""
        return f"{self.name}.{safe_name(plan.name)}"

    def result_target(self, plan: InsertPlan) -> DeltaTarget:
        """The Delta table that has the rows of the result: the sink, or the table from which a topic is written. It has
        the rows of several INSERTs where each writes columns of its own."""
        return replace(self._whole_target(plan), merge_columns=plan.merge_columns)

    def _whole_target(self, plan: InsertPlan) -> DeltaTarget:
        delta = self.tables[plan.sink].delta
        return delta or DeltaTarget(path=f"{self.folder}/results/{safe_name(self.sent_by(plan))}")

    def sent_by(self, plan: InsertPlan) -> str:
        """The name of the publish of an INSERT: INSERTs that share a table have one, with the name of their sink."""
        return plan.sink if plan.merge_columns else plan.name

    def is_sent_later(self, plan: InsertPlan) -> bool:
        """Whether another INSERT writes the same rows after this one, so that they are sent when it has done so."""
        last = [other.name for other in self.script.inserts if self.sent_by(other) == self.sent_by(plan)][-1]
        return plan.name != last

    @property
    def publishes(self) -> Mapping[str, Definition]:
        """All publishes of the script by their names."""
        found = ((self.sent_by(plan), self.publish(plan)) for plan in self.script.inserts)
        return {name: definition for name, definition in found if definition is not None}

    def publish(self, plan: InsertPlan) -> Definition | None:
        """The pipeline that sends the result to the topic of its sink, and creates it if it is missing; None for other
        sinks."""
        topic = self.tables[plan.sink].topic
        if topic is None:
            return None
        config = {"cleanup.policy": "compact"} if topic.is_upsert else {}
        topic = replace(topic, create=topic.create or TopicCreation(config=config))
        if self.sent_by(plan) != plan.sink and topic.sink.transactional_id_prefix is not None:
            # Two publishes with the same transactional ids would fence each other.
            prefix = f"{topic.sink.transactional_id_prefix}-{plan.name.rpartition('-')[2]}"
            topic = replace(topic, sink=replace(topic.sink, transactional_id_prefix=prefix))
        found = self._pipeline(f"results-{safe_name(self.sent_by(plan))}", topic, self._whole_target(plan))
        # A row of which only kept columns have changed is none that changed. A result of an older bridge may have
        # several rows for one key whose time is cut: --rebuild deletes them and adds one in the same commit.
        is_cut = plan.cuts_key and plan.plain is None
        return replace(found, publish=Publish(net_changes=True)) if plan.kept_columns or is_cut else found

    def run_names(self) -> list[RunName]:
        """What the ingests, INSERTs and publishes of the script are called where they are watched."""
        ingests = (self.ingest(self.tables[source.name]) for source in self.script.sources)
        return [
            *(definition.run_name("ingest") for definition in ingests if definition is not None),
            *(RunName(self.result_name(plan), "insert") for plan in self.script.inserts),
            *(definition.run_name("publish") for definition in self.publishes.values()),
        ]

    def checked(self, definition: Definition) -> Definition:
        """A pipeline of this script for commands: with the suite expectations/NAME.json beside the script, and with the
        script's events, alerts, traces and lineage."""
        return for_commands(definition, self.folder, self.script.monitoring)

    def feeds_itself(self) -> bool:
        """Whether an INSERT reads a topic or a Delta table that an INSERT writes."""
        read = {place for source in self.script.sources for place in _places(self.tables[source.name])}
        written = {place for plan in self.script.inserts for place in _places(self.tables[plan.sink])}
        return bool(read & written) or (
            "*" in read and any(not place.startswith("delta ") for place in written)
        )

    def _pipeline(self, part: str, topic: Topic, delta: DeltaTarget) -> Definition:
        run = Run(f"{self.folder}/checkpoints/{part}", step_timeout_seconds=self.script.step_timeout_seconds)
        return Definition(f"{self.name}.{part}", self.script.base, topic, delta, run)


def _places(table: Table) -> tuple[str, ...]:
    """The topics of a table; where they match a pattern, all topics may be meant. Else the Delta table."""
    if table.topic is not None:
        return table.topic.names or ("*",)
    return (f"delta {table.place}",) if table.delta is not None else ()

"""The section `sink`: the topic and the options in WITH of each table that is written.

`upsert-kafka` is that of Realtime Compute: JSON, and the fields of the key in the body, too. `kafka` is Flink CDC's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bridge.bridge_folders import safe_name
from bridge.cdc_jobs.routes import Routed, selector_at
from bridge.cdc_jobs.table_ids import TableId
from bridge.config.topic import table_id
from bridge.config.yaml_tree import Document, Place
from bridge.definition import Topic
from bridge.errors import DefinitionError, UnsupportedError
from bridge.partitioners import AllToZeroPartitioner

_FORMATS = ("debezium-json", "canal-json", "json")
_KEY_FORMATS = ("json", "csv")
_STRATEGIES = {
    "all-to-zero": f"{AllToZeroPartitioner.__module__}:{AllToZeroPartitioner.__name__}",
    "hash-by-key": "default",
}
_MAPPING, _HEADER = "sink.tableId-to-topic.mapping", "sink.custom-header"


@dataclass(frozen=True)
class JobSinks:
    """The tables of the sink. `values` are its options, of which only those for clients still have references."""

    document: Document
    values: Mapping[str, str]
    job: str
    parallelism: int | None

    def topics(self, routed: Sequence[Routed]) -> dict[TableId, str]:
        """Returns the topic of each table: `topic`, the mapping's, or its id.

        Raises DefinitionError with the position for a mapping that is not legal, and for two tables with one topic.
        """
        mapping = [
            (selector_at(self.document, ("sink", _MAPPING), left), right)
            for left, right in self._pairs(_MAPPING, ";", "shop.orders:topic1;shop.items:topic2")
        ]
        topics: dict[TableId, str] = {}
        for sink in (route.sink for route in routed):
            mapped = next((topic for selector, topic in mapping if selector.matches(sink)), ".".join(sink))
            topics[sink] = self.values.get("topic", mapped)
        for sink, topic in topics.items():
            other = next(s for s, t in topics.items() if t == topic)
            if other != sink:
                place: Place = ("sink", "topic" if "topic" in self.values else _MAPPING)
                raise UnsupportedError(
                    f"{self.document.where(place)}: {'.'.join(other)} and {'.'.join(sink)} both go to topic '{topic}', "
                    "where a reader, and a run that continues, could not tell whose rows they are; give each table a "
                    "topic of its own with `route`",
                    "several tables in one topic",
                )
        return topics

    def options(self, sink: TableId, topic: str, key: Sequence[str]) -> dict[str, str]:
        """Returns the options in WITH of one table. Raises DefinitionError with the position."""
        options = {"connector": self.values["type"], "topic": topic}
        options |= {k: v for k, v in self.values.items() if k.startswith("properties.")}
        if self.values["type"] == "upsert-kafka":
            options |= {"key.format": "json", "value.format": "json"}
        else:
            options |= self._kafka(key)
        guarantee = self.values.get("sink.delivery-guarantee")
        if guarantee is not None:
            options["sink.delivery-guarantee"] = guarantee
        if guarantee == "exactly-once":
            options["sink.transactional-id-prefix"] = f"{safe_name(self.job)}.{'.'.join(sink)}"
        if self.parallelism is not None:
            options["sink.parallelism"] = str(self.parallelism)
        return options

    def headers(self, sink: TableId) -> tuple[tuple[str, str], ...]:
        """Returns the headers of every record: the table's id, then `sink.custom-header`."""
        is_on = self.values.get("sink.add-tableId-to-header-enabled", "false").lower() == "true"
        own = self._pairs(_HEADER, ",", "key1:value1,key2:value2")
        return (*(table_id(".".join(sink)) if is_on else ()), *own)

    def constants(self, sink: TableId, key: Sequence[str]) -> dict[str, Any]:
        """Returns what Flink CDC writes about the table into every message of `kafka`."""
        schema = sink[-2] if len(sink) > 1 else None
        if self.values["type"] != "kafka":
            return {}
        if self._choice("value.format", _FORMATS) == "canal-json":
            return {"database": schema, "table": sink[-1], "pkNames": list(key)}
        if self._choice("value.format", _FORMATS) == "debezium-json":
            return {"source": {"db": schema, "table": sink[-1]}}
        return {}

    def written(self, topic: Topic, sink: TableId, key: Sequence[str]) -> Topic:
        """Returns the topic with what no option in WITH says: headers, and constants of its messages."""
        return replace(
            topic,
            sink=replace(topic.sink, headers=self.headers(sink)),
            value=replace(topic.value, constants=self.constants(sink, key)),
        )

    def _kafka(self, key: Sequence[str]) -> dict[str, str]:
        format = self._choice("value.format", _FORMATS)
        if format == "json" and key:
            raise UnsupportedError(
                f"{self.document.where(('sink', 'value.format'))}: 'json' has no updates and deletes, and the "
                "tables have keys; use debezium-json or canal-json, or `type: upsert-kafka`",
                "value.format json with a key",
            )
        prefix = f"{format}."
        own = {k.removeprefix("value."): v for k, v in self.values.items()}
        options = {"value.format": format}
        options |= {f"value.{k}": v for k, v in own.items() if k.startswith(prefix)}
        options["sink.partitioner"] = _STRATEGIES[self._choice("partition.strategy", tuple(_STRATEGIES))]
        key_format = self._choice("key.format", _KEY_FORMATS)
        if key:
            options |= {"key.format": key_format, "key.fields": ";".join(key)}
        return options

    def _choice(self, key: str, legal: Sequence[str]) -> str:
        """Returns the value of an option, by default the first legal one, as in Flink CDC."""
        value = self.values.get(key, legal[0])
        if value not in legal:
            raise DefinitionError(
                f"{self.document.where(('sink', key))}: '{value}' is not legal; legal values are {', '.join(legal)}"
            )
        return value

    def _pairs(self, key: str, separator: str, example: str) -> tuple[tuple[str, str], ...]:
        """Returns the pairs of a list like `example`."""
        pairs = []
        for item in filter(str.strip, self.values.get(key, "").split(separator)):
            left, colon, right = item.rpartition(":")
            if not colon or not left.strip() or not right.strip():
                raise DefinitionError(
                    f"{self.document.where(('sink', key))}: '{item.strip()}' is not a pair; write {example}"
                )
            pairs.append((left.strip(), right.strip()))
        return tuple(pairs)

"""Rules for tables that are published. `load` does not apply them, since the pipeline may only be ingested."""

from __future__ import annotations

from bridge.definition import Topic
from bridge.errors import OptionError
from bridge.options import METADATA


def refuse_unpublishable(topic: Topic) -> None:
    """Raises OptionError for a topic that Flink supports as a source but not as a sink. Every publish checks it."""
    writable = [key for key, metadata in METADATA.items() if metadata.writable]
    written = {column.key: column.name for column in topic.schema.metadata if not column.virtual}
    for key, name in written.items():
        if key not in writable:
            raise OptionError(
                f"metadata '{key}' of column '{name}' is read-only; declare the column VIRTUAL to publish this table. "
                f"Writable keys are {', '.join(writable)}"
            )
    if "headers" in written and "header-list" in written:
        raise OptionError(
            f"columns '{written['headers']}' and '{written['header-list']}' both write the headers of the record; "
            "declare one of them VIRTUAL"
        )
    if "topic" not in written and (topic.pattern is not None or len(topic.names) > 1):
        named = "'topic-pattern'" if topic.pattern is not None else "a list of topics"
        raise OptionError(
            f"with {named} the 'topic' metadata column must be specified in a table that is published; declare a "
            "column STRING METADATA FROM 'topic', which names the topic of each row"
        )
    for part, spec in (("key", topic.key), ("value", topic.value)):
        if spec and "url" in spec.options and "subject" not in spec.options:
            raise OptionError(
                f"Option '{spec.name}.subject' is required for serialization: with several topics there is no default "
                f"subject of the {part}; set it"
            )
    if topic.value.options.get("schema-include") is True:
        raise OptionError(
            f"Debezium JSON serialization doesn't support '{topic.value.name}.schema-include' option been "
            f"set to true."
        )

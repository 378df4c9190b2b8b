"""What a table must be like to be written to a topic; `load` does not know yet whether it will be."""

from __future__ import annotations

from bridge.definition import Topic
from bridge.errors import OptionError
from bridge.options import METADATA

__all__ = ["refuse_unpublishable"]


def refuse_unpublishable(topic: Topic) -> None:
    """Raise OptionError for what Flink refuses in a sink and allows in a source. Publish calls it first."""
    writable = [key for key, metadata in METADATA.items() if metadata.writable]
    written = {column.key: column.name for column in topic.schema.metadata if not column.virtual}
    for key, name in written.items():
        if key not in writable:
            raise OptionError(
                f"metadata '{key}' of column '{name}' can be read but not written; declare the column VIRTUAL to "
                f"publish this table. Writable are {', '.join(writable)}"
            )
    if "headers" in written and "header-list" in written:
        raise OptionError(
            f"columns '{written['headers']}' and '{written['header-list']}' would both write the record's headers: "
            "declare one of them VIRTUAL"
        )
    if "topic" not in written and (topic.pattern is not None or len(topic.names) > 1):
        named = "'topic-pattern'" if topic.pattern is not None else "a list of topics"
        raise OptionError(
            f"with {named} the 'topic' metadata column must be specified in a table that is published: each row names "
            "its topic in a column STRING METADATA FROM 'topic'"
        )
    for part, spec in (("key", topic.key), ("value", topic.value)):
        if spec and "url" in spec.options and "subject" not in spec.options:
            raise OptionError(
                f"Option '{spec.name}.subject' is required for serialization: with several topics the {part}'s subject "
                "has no name of its own"
            )
    if topic.value.options.get("schema-include") is True:
        raise OptionError(
            f"Debezium JSON serialization doesn't support '{topic.value.name}.schema-include' option been "
            f"set to true."
        )

"""What a table must be like to be written to a topic; `load` does not know yet whether it will be."""

from __future__ import annotations

from bridge.definition import Topic
from bridge.errors import OptionError
from bridge.options import METADATA

__all__ = ["refuse_unpublishable"]


def refuse_unpublishable(topic: Topic) -> None:
    """Raise OptionError for what Flink refuses in a sink and allows in a source. Publish calls it first."""
    writable = [key for key, metadata in METADATA.items() if metadata.writable]
    for column in topic.schema.metadata:
        if not column.virtual and column.key not in writable:
            raise OptionError(
                f"metadata '{column.key}' of column '{column.name}' can be read but not written; declare the "
                f"column "
                f"VIRTUAL to publish this table. Writable are {', '.join(writable)}"
            )
    if topic.value.options.get("schema-include") is True:
        raise OptionError(
            f"Debezium JSON serialization doesn't support '{topic.value.name}.schema-include' option been "
            f"set to true."
        )

"""What the login may do with a topic, and how the topic keeps and takes records. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterable

from confluent_kafka import TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient  # type: ignore[attr-defined]

from bridge.definition import Topic
from bridge.kafka.client import AdminSession

_TIMEOUT = 20.0


def missing_rights(
    topic: Topic, names: Iterable[str], *, sends: bool, timeout: float = _TIMEOUT
) -> list[str]:
    """Return the rights that the login lacks, such as `READ on topic 'orders'`; none where the broker tells no rights.

    A publish `sends`, and also looks at the topic; an ingest reads. Raises KafkaError, TopicMissingError.
    """
    needed = {"WRITE": AclOperation.WRITE} if sends else {"READ": AclOperation.READ}
    needed["DESCRIBE"] = AclOperation.DESCRIBE
    found = AdminSession(topic.properties, timeout).request(
        "describe topics",
        AdminClient.describe_topics,
        TopicCollection(list(names)),
        include_authorized_operations=True,
    )
    return [
        f"{right} on topic '{name}'"
        for name, description in found.items()
        if description.authorized_operations
        for right, operation in needed.items()
        if operation not in description.authorized_operations
        and AclOperation.ALL not in description.authorized_operations
    ]

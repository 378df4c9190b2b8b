"""Where a publish's rows are: the key by which they are in the topic, and which topic that is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bridge.definition import Definition, Topic
from bridge.errors import REPUBLISH, GapError
from bridge.kafka import admin
from bridge.publish_progress import PublishProgress, key_digest

__all__ = ["Destination", "topic_key"]

_SEND_WHOLE_TABLE = (
    "take a new run.checkpoint (with exactly-once also another 'sink.transactional-id-prefix') with "
    "`publish: {start: snapshot}`"
)


class Destination:
    """The topics of a publish, with the ids that Kafka gave them when this was made. Raises KafkaError."""

    def __init__(self, definition: Definition, topic: Topic) -> None:
        self._name, self._topic = definition.name, topic
        self._ids = admin.topic_ids(topic)

    def warnings(self) -> Iterator[str]:
        """What a user must look after, as the bridge cannot."""
        if unknown := [name for name, id in self._ids.items() if not id]:
            yield (
                f"the broker tells no topic ids (Kafka tells them from 2.8 on), so a publish does not see when "
                f"{', '.join(unknown)} is deleted and created anew: run `bridge resync FILE` after that"
            )

    def check(self, known: PublishProgress | None) -> None:
        """Raise GapError when progress belongs to other topics, or to rows by another key. Progress of an older bridge
        names neither; then it belongs to what is there."""
        if known is None or not known.has_begun:
            return
        for name, id in known.topics.items():
            if name not in self._ids:
                if self._topic.pattern is None:
                    raise self._gap(f"progress belongs to topic '{name}', the DDL names {self._topic.title}")
            elif id and self._ids[name] and id != self._ids[name]:
                raise self._gap(
                    f"topic '{name}' was deleted and created anew (id {id}, now {self._ids[name]}): what was sent to "
                    "the former one is not in it"
                )
        added = [name for name in self._ids if name not in known.topics]
        # With one topic alone rows had nowhere else to go; among several they name theirs, and could not name this one.
        if len(known.topics) == 1 and added and self._topic.pattern is None:
            raise self._gap(
                f"progress belongs to topic '{next(iter(known.topics))}' alone, not to {added[0]}"
            )
        self._refuse_other_key(known)

    def check_resync(self, known: PublishProgress | None) -> None:
        """`check` for a resync, which heals all but another key: raise GapError where these topics hold rows by it."""
        if known is None or not known.has_begun:
            return
        if not known.topics or any(known.topics.get(name) in ("", id) for name, id in self._ids.items()):
            self._refuse_other_key(known)

    def with_destination(self, progress: PublishProgress) -> PublishProgress:
        """Progress that names key and topics."""
        return replace(progress, key=topic_key(self._topic), topics={**progress.topics, **self._ids})

    def check_unchanged(self) -> None:
        """Raise GapError when a topic is by now another one than it was: what was sent may be in the former one."""
        now = admin.topic_ids(self._topic)
        if changed := [name for name, id in self._ids.items() if now.get(name) != id]:
            raise self._gap(
                f"topic '{changed[0]}' was deleted and created anew while this run sent to it (id "
                f"{self._ids[changed[0]]}, now {now.get(changed[0])})"
            )

    def _refuse_other_key(self, known: PublishProgress) -> None:
        """No reader could tell which records are of which key, so a resync would not find those of the former one."""
        now, title = topic_key(self._topic), self._topic.title
        if known.key not in ("", now, key_digest(now)):
            raise GapError(
                f"{self._name!r}: what is in {title} was sent with {known.key}, the DDL has {now}. Its records would "
                "stay there beside those of the new key, and neither a publish nor a resync could take them away. Put "
                f"the key back, or name a new topic and {_SEND_WHOLE_TABLE}"
            )

    def _gap(self, reason: str) -> GapError:
        return GapError(
            f"{self._name!r}: {reason}; {REPUBLISH}. To send the whole table instead, {_SEND_WHOLE_TABLE}"
        )


def topic_key(topic: Topic) -> str:
    """By what a topic tells rows apart, in words; records of another key stay beside those of this one."""
    if topic.appends:
        return "no PRIMARY KEY"
    told = f"PRIMARY KEY ({', '.join(topic.schema.primary_key)})"
    if topic.key is None:
        return told
    fields = ", ".join(field.name for field in topic.key.row.fields)
    return f"{told}, record keys in {topic.key.name} ({fields})"

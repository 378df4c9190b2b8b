"""The destination of a publish: the topics with Kafka's ids of them, and the key by which they tell rows apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property

from bridge.definition import Definition, Run, Topic
from bridge.errors import REPUBLISH, GapError
from bridge.kafka import admin
from bridge.options import FORMATS
from bridge.publish_progress import NOTHING, PublishProgress, key_digest

_SEND_WHOLE_TABLE = (
    "take a new run.checkpoint or run.state (with exactly-once also another 'sink.transactional-id-prefix') with "
    "`publish: {start: snapshot}`"
)


class Destination:
    """The topics of one run, with the ids that they have when they are first used. Its methods raise KafkaError."""

    def __init__(
        self,
        definition: Definition,
        topic: Topic,
        topic_ids: Callable[[Topic], Mapping[str, str]] = admin.topic_ids,
    ) -> None:
        """`topic` is the definition's with its names resolved; `topic_ids` asks Kafka for their ids."""
        self.topic = topic
        self._name, self._topic_ids = definition.name, topic_ids

    @cached_property
    def _ids(self) -> Mapping[str, str]:
        return self._topic_ids(self.topic)

    def warnings(self) -> Iterator[str]:
        """What a user must watch for, as the bridge cannot."""
        if unknown := [name for name, id in self._ids.items() if not id]:
            yield (
                "the broker does not report topic ids (Kafka has them from 2.8 on), so a publish does not see when "
                f"{', '.join(unknown)} is deleted and created anew: run `bridge resync FILE` after that"
            )

    def first_run_warning(self, run: Run) -> str | None:
        """What a first run leaves in topics that have records, or None where there are none. Call it before this run
        sends anything.

        Kafka does not tell who wrote a record, so it may be that of an earlier publish whose state was lost.
        """
        if self.topic.appends:
            return None
        state = admin.describe(self.topic)
        if not state.earliest.lag(state.end):
            return None
        return (
            f"{self.topic.title} has records, and this publish has no progress of an earlier run "
            f"({run.state_key} {run.state or run.checkpoint}): keys that are there and no longer in the table keep "
            "their records. If they are this publish's own, stop it and run `bridge resync FILE --direction publish`, "
            "which sends their tombstones"
        )

    def check(self, progress: PublishProgress | None) -> None:
        """Raise GapError when progress belongs to other topics, or to rows by another key. Progress of an older bridge
        names neither; it is taken to belong to these topics."""
        ids = self._ids  # read before this run sends anything
        if progress is None or not progress.has_begun:
            return
        for name, id in progress.topics.items():
            if name not in ids:
                if self.topic.pattern is None:
                    raise self._gap(f"progress belongs to topic '{name}', the DDL names {self.topic.title}")
            elif id and ids[name] and id != ids[name]:
                raise self._gap(
                    f"topic '{name}' was deleted and created anew (id {id}, now {ids[name]}): what was sent to the "
                    "deleted one is not in it"
                )
        added = [name for name in ids if name not in progress.topics]
        # Rows that were published to a single topic may belong to another one now that there are several. Rows that
        # were published to several topics name theirs, and could not have named an added one.
        if len(progress.topics) == 1 and added and self.topic.pattern is None:
            raise self._gap(
                f"progress belongs to topic '{next(iter(progress.topics))}' alone, not to {added[0]}"
            )
        self._refuse_other_key(progress)

    def check_resync(self, progress: PublishProgress | None) -> None:
        """Raise GapError when these topics hold rows by another key: all that a resync cannot repair of what `check`
        refuses."""
        if progress is None or not progress.has_begun:
            return
        topics = progress.topics
        if not topics or any(topics.get(name) in ("", id) for name, id in self._ids.items()):
            self._refuse_other_key(progress)

    def check_unchanged(self) -> None:
        """Raise GapError when a topic was recreated during this run: what it sent may be in the deleted one."""
        ids = self._ids
        now = self._topic_ids(self.topic)
        if changed := [name for name, id in ids.items() if now.get(name) != id]:
            raise self._gap(
                f"topic '{changed[0]}' was deleted and created anew while this run sent to it (id "
                f"{ids[changed[0]]}, now {now.get(changed[0])})"
            )

    def with_destination(self, progress: PublishProgress) -> PublishProgress:
        """Add the key and the topics to progress."""
        return replace(progress, key=topic_key(self.topic), topics={**progress.topics, **self._ids})

    def with_ends(self, progress: PublishProgress) -> PublishProgress:
        """Add the topics' ends to progress that has none, for `verify` and for the detection of foreign writes. All
        records up to its version must have been sent."""
        if progress.ends is not None or progress.version == NOTHING:
            return progress
        return replace(progress, ends=admin.log_end_offsets(self.topic))

    def _refuse_other_key(self, progress: PublishProgress) -> None:
        """Raise GapError: no reader can match records of two keys, so a resync would not see those of the old one."""
        now, title = topic_key(self.topic), self.topic.title
        if progress.key not in ("", now, key_digest(now)):
            without = now.replace(" NOT NULL", "")
            is_older = without != now and progress.key in (without, key_digest(without))
            way = (
                "An older bridge wrote Avro keys with other bytes: name"
                if is_older
                else "Put the key back, or name"
            )
            raise GapError(
                f"{self._name!r}: what is in {title} was sent with {progress.key}, the DDL has {now}. Its records "
                "would stay there beside those of the new key, and neither a publish nor a resync could take them "
                f"away. {way} a new topic and {_SEND_WHOLE_TABLE}"
            )

    def _gap(self, reason: str) -> GapError:
        return GapError(
            f"{self._name!r}: {reason}; {REPUBLISH}. To send the whole table instead, {_SEND_WHOLE_TABLE}"
        )


def topic_key(topic: Topic) -> str:
    """Describe the key by which a topic tells rows apart, as `PublishProgress.key` records it: PRIMARY KEY, format and
    fields of the record key, NOT NULL in a schema that is derived: older bridges did not say so, and wrote other bytes.
    """
    if topic.appends:
        return "no PRIMARY KEY"
    primary_key = f"PRIMARY KEY ({', '.join(topic.schema.primary_key)})"
    if topic.key is None:
        return primary_key
    is_derived = FORMATS[topic.key.name].has_nullability and "schema" not in topic.key.options
    fields = ", ".join(
        f"{field.name} NOT NULL" if is_derived and not field.type.nullable else field.name
        for field in topic.key.row.fields
    )
    return f"{primary_key}, record keys in {topic.key.name} ({fields})"

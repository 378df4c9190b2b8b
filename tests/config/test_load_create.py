"""`topic.create` of the pipeline file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bridge import config
from bridge.definition import TopicCreation
from bridge.errors import DefinitionError, OptionError
from tests.config.files import WHOLE, loaded

COMPACT = {"cleanup.policy": "compact"}


def _with(section: str, text: str = WHOLE) -> str:
    return text.replace("topic:\n", f"topic:\n  create: {section}\n")


@pytest.mark.parametrize(
    ("section", "made"),
    [
        ("{}", TopicCreation(None, None, COMPACT)),
        ("{partitions: '${env:N:6}', replication: 3}", TopicCreation(6, 3, COMPACT)),
        (
            "{config: {cleanup.policy: 'compact,delete', retention.ms: 1000, preallocate: true}}",
            TopicCreation(
                None,
                None,
                {"cleanup.policy": "compact,delete", "retention.ms": "1000", "preallocate": "true"},
            ),
        ),
    ],
)
def test_upsert_topics_are_compacted_unless_said_otherwise(
    tmp_path: Path, section: str, made: TopicCreation
) -> None:
    definition = loaded(tmp_path, _with(section))
    assert definition.topic.create == made
    shown = config.resolved(definition)["topic"]["create"]
    assert shown == {"partitions": made.partitions, "replication": made.replication, "config": made.config}


def test_others_are_as_the_broker_likes(tmp_path: Path) -> None:
    text = WHOLE.replace("'upsert-kafka'", "'kafka'").replace("'key.format' = 'json', ", "")
    text = text.replace(",\n      PRIMARY KEY (id) NOT ENFORCED", "")
    assert loaded(tmp_path, _with("{partitions: 2}", text)).topic.create == TopicCreation(2, None, {})
    assert loaded(tmp_path, text).topic.create is None


def test_a_pattern_names_nothing_to_create(tmp_path: Path) -> None:
    text = WHOLE.replace("'topic' = 'orders'", "'topic-pattern' = 'orders.*'")
    with pytest.raises(OptionError, match=r"orders\.yaml:4: topic: topic\.create cannot be combined with"):
        loaded(tmp_path, _with("{}", text))


@pytest.mark.parametrize(
    ("section", "told"),
    [
        ("{partitions: 0}", "topic.create.partitions: '0': a number of at least 1 is expected"),
        ("{partition: 1}", "topic.create.partition is not a legal key; did you mean 'partitions'?"),
        ("yes", "topic.create: 'yes': a mapping (key: value) is expected"),
    ],
)
def test_what_is_refused(tmp_path: Path, section: str, told: str) -> None:
    with pytest.raises(DefinitionError, match=re.escape(told)):
        loaded(tmp_path, _with(section))

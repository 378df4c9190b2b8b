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
    ("section", "creation"),
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
def test_upsert_topics_are_compacted_by_default(
    tmp_path: Path, section: str, creation: TopicCreation
) -> None:
    definition = loaded(tmp_path, _with(section))
    assert definition.topic.create == creation
    shown = config.resolved(definition)["topic"]["create"]
    assert shown == {
        "partitions": creation.partitions,
        "replication": creation.replication,
        "config": creation.config,
    }


def test_other_topics_have_the_defaults_of_the_broker(tmp_path: Path) -> None:
    text = WHOLE.replace("'upsert-kafka'", "'kafka'").replace("'key.format' = 'json', ", "")
    text = text.replace(",\n      PRIMARY KEY (id) NOT ENFORCED", "")
    assert loaded(tmp_path, _with("{partitions: 2}", text)).topic.create == TopicCreation(2, None, {})
    assert loaded(tmp_path, text).topic.create is None


def test_a_pattern_cannot_be_created(tmp_path: Path) -> None:
    text = WHOLE.replace("'topic' = 'orders'", "'topic-pattern' = 'orders.*'")
    with pytest.raises(OptionError, match=r"orders\.yaml:4: topic: topic\.create cannot be combined with"):
        loaded(tmp_path, _with("{}", text))


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("{partitions: 0}", "topic.create.partitions: '0': a number of at least 1 is expected"),
        ("{partition: 1}", "topic.create.partition is not a legal key; did you mean 'partitions'?"),
        ("yes", "topic.create: 'yes': a mapping (key: value) is expected"),
    ],
)
def test_what_is_refused(tmp_path: Path, section: str, message: str) -> None:
    with pytest.raises(DefinitionError, match=re.escape(message)):
        loaded(tmp_path, _with(section))

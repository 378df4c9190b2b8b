"""Warnings of settings that are legal, but deprecated, risky or without effect.

Settings that a verb does not use are named in one warning.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.config import resolve_topic, settings_without_effect
from bridge.config.definition_warnings import warnings
from bridge.ddl import Ddl
from tests.config.files import WHOLE, loaded
from tests.config.tables import kafka

_KEY = {"key__format": "json", "key__fields": "id"}
_ROWS = "id INT, PRIMARY KEY (id) NOT ENFORCED"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (kafka("id INT", format="json", sink__partitioner="fixed"), None),
        (kafka("id INT", format="json", sink__partitioner="round-robin"), None),
        (kafka("id INT", format="json", sink__partitioner="fixed", **_KEY), "set 'sink.parallelism'"),
        (kafka("id INT", format="json", sink__partitioner="fixed", sink__parallelism="2", **_KEY), None),
        (kafka(_ROWS, format="debezium-json", sink__partitioner="round-robin"), "in no particular order"),
        (kafka(_ROWS, format="debezium-json", sink__partitioner="fixed"), "in no particular order"),
    ],
)
def test_partitioners_that_distribute_the_changes_of_a_key(table: Ddl, message: str | None) -> None:
    messages = list(warnings(resolve_topic(table)))
    assert len(messages) == (message is not None)
    assert message is None or message in messages[0]


_ONCE = {"sink__delivery_guarantee": "exactly-once", "sink__transactional_id_prefix": "p"}


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (
            "id INT",
            {"scan__watermark__idle_timeout": "1 min"},
            "idle-timeout' has no effect without a WATERMARK",
        ),
        (
            "id INT, at TIMESTAMP(3), WATERMARK FOR at AS at",
            {"scan__watermark__idle_timeout": "1 min"},
            None,
        ),
        (
            "id INT",
            {"sink__transaction_naming_strategy": "pooling"},
            "no effect without 'sink.delivery-guarantee'",
        ),
        ("id INT", {"sink__transaction_naming_strategy": "pooling", **_ONCE}, None),
        (
            "id INT",
            {"sink__transaction_naming_strategy": "default", **_ONCE},
            "'default' is read as 'pooling'",
        ),
        ("id INT", _ONCE, None),
    ],
)
def test_options_without_effect_are_named(columns: str, options: dict[str, str], message: str | None) -> None:
    messages = list(warnings(resolve_topic(kafka(columns, format="json", **options))))
    assert len(messages) == (message is not None), messages
    assert message is None or message in messages[0]


def test_settings_of_the_other_direction_are_named(tmp_path: Path) -> None:
    more = "'properties.fetch.min.bytes' = '1', 'properties.group.id' = 'g', 'properties.acks' = 'all',"
    topic = loaded(tmp_path, WHOLE.replace("'key.format'", f"{more} 'key.format'")).topic
    warning = "'properties.fetch.min.bytes', 'properties.group.id' have no effect on publish: only a consumer uses them"
    assert list(settings_without_effect(topic, "publish")) == [warning]
    assert list(settings_without_effect(topic, "ingest")) == [
        "'properties.acks' has no effect on ingest: only a producer uses it"
    ]
    plain = loaded(tmp_path, WHOLE).topic
    assert [*settings_without_effect(plain, "publish"), *settings_without_effect(plain, "ingest")] == []

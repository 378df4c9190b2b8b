"""Features of Flink that this version does not support are refused by name, after all other rules."""

from __future__ import annotations

import pytest

from bridge.config import refuse_topic, resolve_topic
from bridge.ddl import Ddl
from bridge.errors import UnsupportedError
from tests.config.tables import upsert

TABLES: list[tuple[Ddl, str]] = [
    (upsert("id ROW<a INT>, PRIMARY KEY (id) NOT ENFORCED"), "a ROW in the PRIMARY KEY"),
]


@pytest.mark.parametrize(("table", "what"), TABLES)
def test_unsupported_features_are_named(table: Ddl, what: str) -> None:
    topic = resolve_topic(table)
    with pytest.raises(UnsupportedError) as error:
        refuse_topic(topic)
    assert error.value.what == what
    assert str(error.value).startswith(f"{what} is not supported in this version: ")


@pytest.mark.parametrize(
    "options", [{}, {"sink__transaction_naming_strategy": "DEFAULT"}, {"sink__delivery_guarantee": "none"}]
)
def test_supported_features_are_accepted(options: dict[str, str]) -> None:
    refuse_topic(resolve_topic(upsert(**options)))


def test_several_topics_and_a_pattern_are_accepted() -> None:
    refuse_topic(resolve_topic(upsert(topic="a;b")))
    table = upsert(topic_pattern="t.*")
    del table.options["topic"]
    refuse_topic(resolve_topic(table))

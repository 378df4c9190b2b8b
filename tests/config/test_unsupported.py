"""What is legal in Flink and refused for now: checked by every rule first, then named."""

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
def test_it_is_named(table: Ddl, what: str) -> None:
    topic = resolve_topic(table)
    with pytest.raises(UnsupportedError) as caught:
        refuse_topic(topic)
    assert caught.value.what == what
    assert str(caught.value).startswith(f"{what} is not supported in this version: ")


@pytest.mark.parametrize(
    "options", [{}, {"sink__transaction_naming_strategy": "DEFAULT"}, {"sink__delivery_guarantee": "none"}]
)
def test_what_can_be_run_is_not_refused(options: dict[str, str]) -> None:
    refuse_topic(resolve_topic(upsert(**options)))


def test_several_topics_and_a_pattern_can_be_run() -> None:
    refuse_topic(resolve_topic(upsert(topic="a;b")))
    table = upsert(topic_pattern="t.*")
    del table.options["topic"]
    refuse_topic(resolve_topic(table))

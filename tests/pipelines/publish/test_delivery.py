"""Which delivery a pipeline gets.

Which progress holds when a publish takes over: Kafka's or the log's.

In which ranges of an at-least-once publish no key has two records.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.errors import GapError
from bridge.pipelines.publish.delivery import AtLeastOnce, ExactlyOnce, delivery_for, reconcile
from bridge.pipelines.publish.destination import Destination
from bridge.pipelines.publish.sharding import is_unique_in_range
from bridge.publish_progress import NOTHING, PublishProgress, PublishRange
from tests.config.files import loaded, pipeline_text
from tests.pipelines.world import Make


@pytest.mark.parametrize(
    ("guarantee", "kind"),
    [("at-least-once", AtLeastOnce), ("none", AtLeastOnce), ("exactly-once", ExactlyOnce)],
)
def test_the_guarantee_names_the_delivery(
    make: Make, spark: SparkSession, unique: Callable[[str], str], guarantee: str, kind: type[object]
) -> None:
    """An open range that has no shards gets them where there are transactions."""
    options = {"sink.delivery-guarantee": guarantee}
    if guarantee == "exactly-once":
        options["sink.transactional-id-prefix"] = unique("tx")
    world = make(options=options)
    definition = world.definition()
    with delivery_for(spark, definition, Destination(definition, definition.topic)) as delivery:
        assert isinstance(delivery, kind)
        assert delivery.take_over() is None
        progress = PublishProgress(definition.name, "table", 3, 0)
        recorded = delivery.record(progress.opened(PublishRange(4, 4, snapshot=True)))
        assert recorded.batch == 1 and set(recorded.topics) == {world.topic}
        assert recorded.open is not None
        assert recorded.open.shards == (2 if guarantee == "exactly-once" else 0)
    with delivery_for(spark, definition, Destination(definition, definition.topic)) as delivery:
        taken_over = delivery.take_over()
        assert taken_over is not None and taken_over.open == recorded.open


AT_5 = PublishProgress("p", "table", 5, 10, run="one")
BEGUN = replace(AT_5.opened(PublishRange(6, 9, shards=3)), batch=11)
AT_9 = replace(BEGUN.closed(), batch=12)


def chunk(
    number: int, *, shards: int = 3, files: str = "", batch: int = 0, run: str | None = "one"
) -> PublishProgress:
    """A first snapshot of version 4, in five chunks."""
    publish_range = PublishRange(4, 4, snapshot=True, chunk=number, chunks=5, shards=shards, files=files)
    return PublishProgress("p", "table", NOTHING, batch, open=publish_range, run=run)


def at_least_once(progress: PublishProgress, batch: int) -> PublishProgress:
    """Progress as at-least-once records it."""
    return replace(progress, batch=batch, run=None)


@pytest.mark.parametrize(
    ("in_kafka", "logged", "expected"),
    [
        pytest.param(None, None, None, id="never published"),
        pytest.param(None, AT_5, AT_5, id="lost, no range open"),
        pytest.param(
            None,
            at_least_once(chunk(2, shards=0), 3),
            at_least_once(chunk(2, shards=0), 3),
            id="from at-least-once",
        ),
        pytest.param(AT_9, None, AT_9, id="checkpoint lost"),
        pytest.param(BEGUN, BEGUN, BEGUN, id="died in the range"),
        pytest.param(AT_5, BEGUN, BEGUN, id="died between log and Kafka"),
        pytest.param(AT_9, BEGUN, AT_9, id="died between Kafka and log"),
        pytest.param(AT_9, AT_5, AT_9, id="an older checkpoint brought back"),
        pytest.param(
            replace(AT_9, run="two", batch=11),
            BEGUN,
            replace(AT_9, run="two", batch=11),
            id="a zombie wrote last",
        ),
        pytest.param(
            AT_9,
            at_least_once(replace(AT_9, version=14), 14),
            at_least_once(replace(AT_9, version=14), 14),
            id="passed",
        ),
        pytest.param(
            AT_9,
            at_least_once(replace(AT_9, version=14), 12),
            at_least_once(replace(AT_9, version=14), 12),
            id="passed, from the log",
        ),
        pytest.param(
            BEGUN,
            at_least_once(AT_5, 13),
            replace(BEGUN, batch=13),
            id="at-least-once began and sent nothing",
        ),
        pytest.param(chunk(1, batch=4), chunk(2, batch=5), chunk(2, batch=5), id="died after a chunk"),
        pytest.param(
            chunk(1, batch=4),
            at_least_once(chunk(3, shards=0), 6),
            at_least_once(chunk(3, shards=3), 6),
            id="at-least-once sent chunks",
        ),
        pytest.param(
            chunk(1, batch=4, shards=7, files="names"),
            at_least_once(chunk(3, shards=0), 6),
            at_least_once(chunk(3, shards=7, files="names"), 6),
            id="at-least-once sent chunks, where files are shards",
        ),
        pytest.param(
            chunk(1, batch=4),
            at_least_once(chunk(1, shards=0), 5),
            chunk(1, batch=5),
            id="at-least-once sent no chunk",
        ),
    ],
)
def test_which_progress_is_newer(
    in_kafka: PublishProgress | None, logged: PublishProgress | None, expected: PublishProgress | None
) -> None:
    assert reconcile(in_kafka, logged, "prefix") == expected


@pytest.mark.parametrize("logged", [BEGUN, chunk(1)])
def test_lost_progress_of_an_open_range_is_a_gap(logged: PublishProgress) -> None:
    with pytest.raises(
        GapError, match=r"'prefix' \(groups forget .* were under way: what of them was sent is not known"
    ):
        reconcile(None, logged, "prefix")


@pytest.mark.parametrize(
    ("options", "publish_range", "unique"),
    [
        pytest.param({}, PublishRange(4, 4), True, id="one version"),
        pytest.param({}, PublishRange(4, 5), False, id="two versions"),
        pytest.param({}, PublishRange(4, 4, snapshot=True, chunks=3), True, id="a snapshot"),
        pytest.param(
            {"connector": "kafka", "key.fields": "a", "value.format": "debezium-json"},
            PublishRange(4, 4),
            False,
            id="several messages for a change",
        ),
    ],
)
def test_a_key_has_one_record_in_a_range(
    tmp_path: Path, options: dict[str, str], publish_range: PublishRange, unique: bool
) -> None:
    definition = loaded(tmp_path, pipeline_text("a BIGINT, b BIGINT, PRIMARY KEY (a) NOT ENFORCED", options))
    assert is_unique_in_range(definition.topic, publish_range) is unique

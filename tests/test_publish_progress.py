"""The recorded state of a publish is read back the same, and nothing else is read as one."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.publish_progress import NOTHING, PublishProgress, PublishRange, key_digest

counts = st.integers(0, 2**40)
ranges = st.builds(PublishRange, counts, counts, st.booleans(), counts, counts, counts)
states = st.builds(
    PublishProgress, st.text(), st.text(), counts, counts, st.none() | ranges, st.none() | st.text()
)


def test_the_names_in_json_are_those_of_format_1() -> None:
    """Older bridges wrote these names, into Kafka and into the publish log, and read them."""
    state = PublishProgress("p", "id", 1, 2, PublishRange(2, 3, shards=4, cursors_recorded=True))
    written = json.loads(state.to_json())["bridge"]["open"]
    assert sorted(written) == sorted(
        ["first", "last", "snapshot", "chunk", "chunks", "slots", "files", "resync", "noted"]
    )
    assert (written["slots"], written["noted"]) == (4, True)


@given(states)
def test_it_is_read_back(state: PublishProgress) -> None:
    text = state.to_json()
    assert "\n" not in text
    assert PublishProgress.from_json(text) == state


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "7",
        "[]",
        '"bridge"',
        "{}",
        '{"bridge": null}',
        '{"bridge": {}}',
        '{"bridge": {"format": 1}}',
        '{"bridge": {"format": 1, "pipeline": "p", "table_id": "t", "version": 1, "batch": 1, "more": 1}}',
        '{"bridge": {"format": 1, "pipeline": "p", "table_id": "t", "version": 1, "batch": 1, "open": {"first": 1}}}',
    ],
)
def test_nothing_else_is_progress(text: str) -> None:
    with pytest.raises(ValueError, match=r"not the progress of a publish|Expecting"):
        PublishProgress.from_json(text)


def test_a_newer_format_has_an_error_of_its_own() -> None:
    written = json.loads(PublishProgress("p", "t", 1, 1).to_json())
    written["bridge"]["format"] = 2
    with pytest.raises(NotImplementedError, match="newer bridge"):
        PublishProgress.from_json(json.dumps(written))


def test_lost_records_add_up() -> None:
    state = PublishProgress("p", "t", NOTHING, 0).opened(PublishRange(5, 5, snapshot=True, chunks=2))
    state = state.closed(lost=2).closed(lost=3).opened(PublishRange(6, 6)).closed()
    assert (state.version, state.lost) == (6, 5)
    assert PublishProgress.from_json(state.to_json()) == state


def test_the_sender_is_where_older_bridges_do_not_look() -> None:
    """A field that they do not know made them take a file of the log for a broken one."""
    state = PublishProgress("p", "t", 3, 7, sender="tasks (all rows are sent)")
    written = json.loads(state.to_json())
    assert written["sender"] == state.sender and "sender" not in written["bridge"]
    assert PublishProgress.from_json(state.to_json()).sender == state.sender
    assert "sender" not in state.for_offset_metadata().to_json()


def test_a_range_of_changes_ends_at_its_last_version() -> None:
    state = PublishProgress("p", "t", 3, 7)
    opened = state.opened(PublishRange(4, 9, shards=2))
    assert (opened.version, opened.open) == (3, PublishRange(4, 9, shards=2))
    assert opened.closed() == replace(state, version=9)


def test_a_snapshot_ends_with_its_last_chunk() -> None:
    state = PublishProgress("p", "t", NOTHING, 0).opened(
        PublishRange(5, 5, snapshot=True, chunks=3, shards=2)
    )
    for chunk in (1, 2):
        state = state.closed()
        assert state.version == NOTHING
        assert state.open == PublishRange(5, 5, snapshot=True, chunk=chunk, chunks=3, shards=2)
    assert (state.closed().version, state.closed().open) == (5, None)


def test_offset_metadata_fits_into_what_kafka_accepts() -> None:
    """4,096 bytes, whatever the key and the topics are; short ones are written as they are."""
    short = PublishProgress("p", "t", 3, 7, key="PRIMARY KEY (id)", topics={"t": "id", "u": ""})
    assert short.for_offset_metadata() == short
    many = {f"{n}-{'t' * 240}": "i" * 22 for n in range(100)}
    long = replace(short, key=f"PRIMARY KEY ({'ä' * 3000})", topics=many, run="r" * 32, resync="s" * 32)
    long = long.opened(
        PublishRange(2**40, 2**40, snapshot=True, chunk=9**9, chunks=9**9, shards=999, files="f" * 64)
    )
    assert len(long.for_offset_metadata().to_json()) < 2000
    assert long.for_offset_metadata().key == key_digest(long.key) != key_digest("PRIMARY KEY (id)")

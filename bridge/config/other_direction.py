"""Client settings of the other direction: of a consumer on a publish, of a producer on an ingest."""

from __future__ import annotations

from collections.abc import Iterator

from bridge.definition import Topic
from bridge.options.properties import PREFIX, SETTINGS, Client

__all__ = ["settings_without_effect"]

_OTHER = {"publish": ("a consumer", Client.READER), "ingest": ("a producer", Client.PRODUCER)}


def settings_without_effect(topic: Topic, verb: str) -> Iterator[str]:
    """At most one sentence, which names the settings that this verb (`ingest`, `publish`) makes no use of.

    No matter of the pipeline file, which may serve both verbs.
    """
    whose, client = _OTHER[verb]
    given = [
        f"'{PREFIX}{name}'"
        for name in topic.properties
        if name in SETTINGS and SETTINGS[name].clients == frozenset({client})
    ]
    if given:
        have = "has" if len(given) == 1 else "have"
        yield f"{', '.join(given)} {have} no effect on {verb}: for {whose} alone"

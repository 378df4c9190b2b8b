"""Warns of client settings that only affect the other direction of a pipeline."""

from __future__ import annotations

from collections.abc import Iterator

from bridge.definition import Topic
from bridge.options.properties import PREFIX, SETTINGS, Client

_OTHER = {"publish": ("a consumer", Client.READER), "ingest": ("a producer", Client.PRODUCER)}


def settings_without_effect(topic: Topic, verb: str) -> Iterator[str]:
    """Yields at most one warning, which names the client settings that `verb` (`ingest` or `publish`) does not use.

    They are not warnings of the definition, since one pipeline file may serve both verbs.
    """
    client_name, client = _OTHER[verb]
    given = [
        f"'{PREFIX}{name}'"
        for name in topic.properties
        if name in SETTINGS and SETTINGS[name].clients == frozenset({client})
    ]
    if given:
        have, them = ("has", "it") if len(given) == 1 else ("have", "them")
        yield f"{', '.join(given)} {have} no effect on {verb}: only {client_name} uses {them}"

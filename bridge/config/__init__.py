"""The pipeline file: read, checked and resolved into a Definition."""

from bridge.config.json_schema import json_schema
from bridge.config.load import load
from bridge.config.not_yet import refuse_topic
from bridge.config.one_sided import without_effect
from bridge.config.publishable import refuse_unpublishable
from bridge.config.show import resolved
from bridge.config.topic import resolve_topic

__all__ = [
    "json_schema",
    "load",
    "refuse_topic",
    "refuse_unpublishable",
    "resolve_topic",
    "resolved",
    "without_effect",
]

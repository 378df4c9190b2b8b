"""Loads the pipeline file: parses and checks it and resolves it into a Definition."""

from bridge.config.definition_warnings import settings_without_effect
from bridge.config.load import load
from bridge.config.publish_rules import refuse_unpublishable
from bridge.config.semantics_text import semantics_text
from bridge.config.show import json_schema, resolved
from bridge.config.topic import resolve_topic
from bridge.config.unsupported import refuse_topic

__all__ = [
    "json_schema",
    "load",
    "refuse_topic",
    "refuse_unpublishable",
    "resolve_topic",
    "resolved",
    "semantics_text",
    "settings_without_effect",
]

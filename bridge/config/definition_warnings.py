"""Warnings of settings that are legal, but deprecated, risky or without effect."""

from __future__ import annotations

from collections.abc import Iterator

from bridge.config.topic import table_options
from bridge.definition import DeliveryGuarantee, Topic
from bridge.options import FORMATS
from bridge.options.properties import PREFIX, SETTINGS, Client, ignored_warning, unused_security_settings
from bridge.options.scan import IDLE_TIMEOUT
from bridge.options.sink import (
    DELIVERY_GUARANTEE,
    NAMING,
    PARTITIONER,
    SEMANTIC,
    SINK_PARALLELISM,
    TRANSACTIONAL_ID_PREFIX,
)


def warnings(topic: Topic) -> Iterator[str]:
    """Yields a warning for each deprecated key, each setting without effect and each risky setting."""
    for name in topic.properties:
        warning = ignored_warning(name)
        if warning:
            yield warning
    yield from unused_security_settings(table_options(topic.options).properties())
    if topic.key and FORMATS[topic.key.name].registry:
        yield (
            f"'key.format' = '{topic.key.name}': the id of the schema is part of the key's bytes, so a new version of "
            "the schema sends the same key to another partition; do not change the columns of the key"
        )
    if SEMANTIC.key in topic.options:
        yield f"'{SEMANTIC.key}' is deprecated; use '{DELIVERY_GUARANTEE.key}'"
    if topic.sink.delivery_guarantee is DeliveryGuarantee.NONE:
        yield f"'{DELIVERY_GUARANTEE.key}' = 'none': a failure may lose records; use 'at-least-once'"
    prefix = topic.sink.transactional_id_prefix
    if prefix and topic.sink.delivery_guarantee is not DeliveryGuarantee.EXACTLY_ONCE:
        yield f"'{TRANSACTIONAL_ID_PREFIX.key}' has no effect without '{DELIVERY_GUARANTEE.key}' = 'exactly-once'"
    yield from _naming(topic)
    if IDLE_TIMEOUT.key in topic.options and topic.schema.watermark is None:
        yield f"'{IDLE_TIMEOUT.key}' has no effect without a WATERMARK in the DDL"
    if topic.sink.partitioner == "fixed" and topic.key and topic.sink.parallelism is None:
        yield (
            f"'{PARTITIONER.key}' = 'fixed': the partition of a key changes with the number of tasks; set "
            f"'{SINK_PARALLELISM.key}'"
        )
    if topic.sink.partitioner in ("fixed", "round-robin") and topic.key is None and topic.schema.primary_key:
        yield (
            f"'{PARTITIONER.key}' = '{topic.sink.partitioner}': the changes of one row go to several partitions, so "
            "consumers read them in no particular order; set 'key.fields'"
        )
    if topic.properties.get("isolation.level") == "read_uncommitted":
        yield (
            "'properties.isolation.level' = 'read_uncommitted': records of aborted transactions are read, too; use "
            "'read_committed'"
        )


def _naming(topic: Topic) -> Iterator[str]:
    given = topic.options.get(NAMING.key)
    if given is None:
        return
    if topic.sink.delivery_guarantee is not DeliveryGuarantee.EXACTLY_ONCE:
        yield f"'{NAMING.key}' has no effect without '{DELIVERY_GUARANTEE.key}' = 'exactly-once'"
    elif str(given).lower() == "default":
        yield f"'{NAMING.key}' = 'default' is read as 'pooling', which reuses transactional ids; set 'pooling'"


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

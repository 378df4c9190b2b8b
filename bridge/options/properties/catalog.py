"""Every client setting by its Java name; what is none is refused, with the nearest that is."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType

from bridge.errors import OptionError
from bridge.options.properties.common import COMMON
from bridge.options.properties.consumer import CONSUMER
from bridge.options.properties.flink_only import FLINK_ONLY
from bridge.options.properties.model import PREFIX, Setting, Treatment
from bridge.options.properties.producer import PRODUCER
from bridge.options.properties.sasl import SASL
from bridge.options.properties.tls import TLS

__all__ = ["SETTINGS", "check_property", "ignored_warning"]

_ALL = (*COMMON, *CONSUMER, *PRODUCER, *TLS, *SASL, *FLINK_ONLY)

SETTINGS: Mapping[str, Setting] = MappingProxyType({setting.key: setting for setting in _ALL})
"""All settings that Kafka's Java consumer, producer and admin client have, and Flink's own."""

if len(SETTINGS) < len(_ALL):
    raise ValueError("a client setting is declared twice")

_LIBRDKAFKA_NAMES = {
    **{s.librdkafka: s.key for s in _ALL if s.librdkafka and s.librdkafka not in SETTINGS},
    "sasl.username": "sasl.jaas.config",
    "sasl.password": "sasl.jaas.config",
    "sasl.mechanisms": "sasl.mechanism",
    "ssl.ca.location": "ssl.truststore.location",
    "queue.buffering.max.ms": "linger.ms",
    "message.timeout.ms": "delivery.timeout.ms",
    "compression.codec": "compression.type",
    "request.required.acks": "acks",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "metadata.broker.list": "bootstrap.servers",
}


def check_property(connector: str, key: str, text: str, masked: bool = False) -> None:
    """Judge the client setting `key` (no prefix) and its value, which is not quoted if `masked`.

    Raises OptionError for a setting that does not exist, naming the nearest, for one that the bridge sets or
    refuses, with the reason, and for a value that a client which uses it does not take, with those that it takes.
    """
    setting = SETTINGS.get(key)
    if setting is None:
        raise OptionError(f"'{PREFIX}{key}' is not a setting of Kafka's clients; {_suggestion(key)}")
    setting.check(connector, text, masked)


def ignored_warning(key: str) -> str | None:
    """What to say of a legal setting that has no effect here; None for one that has."""
    setting = SETTINGS.get(key)
    if setting is None or setting.treatment is not Treatment.IGNORED:
        return None
    return f"'{PREFIX}{key}' has no effect: {setting.reason}"


def _suggestion(key: str) -> str:
    if key in _LIBRDKAFKA_NAMES:
        return f"librdkafka's name is written as Java's: '{PREFIX}{_LIBRDKAFKA_NAMES[key]}'"
    near = get_close_matches(key.lower(), SETTINGS, 1, 0.6)
    return f"did you mean '{PREFIX}{near[0]}'?" if near else "docs/options.md lists them"

"""The catalog of client settings by their Java names; checks a setting and suggests a name for unknown ones."""

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
"""All settings of Kafka's Java consumer, producer and admin client, and those of Flink's source."""

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
    """Checks the client setting `key` (without prefix) and its value, which is not quoted if `masked`.

    Raises OptionError for a setting that does not exist, with the most similar name; for one that the bridge sets or
    refuses, with the reason; and for a value that one of its clients does not accept, with the legal values.
    """
    setting = SETTINGS.get(key)
    if setting is None:
        raise OptionError(f"'{PREFIX}{key}' is not a setting of Kafka's clients; {_suggestion(key)}")
    setting.check(connector, text, masked)


def ignored_warning(key: str) -> str | None:
    """Returns the warning for a legal setting that has no effect; None for all other settings."""
    setting = SETTINGS.get(key)
    if setting is None or setting.treatment is not Treatment.IGNORED:
        return None
    return f"'{PREFIX}{key}' has no effect: {setting.reason}"


def _suggestion(key: str) -> str:
    if key in _LIBRDKAFKA_NAMES:
        return f"it is librdkafka's name; write the Java name '{PREFIX}{_LIBRDKAFKA_NAMES[key]}'"
    near = get_close_matches(key.lower(), SETTINGS, 1, 0.6)
    return f"did you mean '{PREFIX}{near[0]}'?" if near else "docs/options.md lists all settings"

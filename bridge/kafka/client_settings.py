"""Converts Kafka client settings under their Java names for the two clients of the bridge.

Spark's source (the Java client) reads records. librdkafka, whose names and ranges differ, does everything else.
`bridge.options.properties` lists for each setting which client gets it, and under which name. A setting that it refuses
is refused here, too, for topics without a pipeline file.

Secrets become text here and in `security`, nowhere else: never log what these functions return.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from bridge.definition import Topic
from bridge.kafka import security
from bridge.options.model import KAFKA
from bridge.options.properties import SETTINGS, Client, check_combinations, check_property
from bridge.options.properties.producer import LEVELS
from bridge.secret import Secret

__all__ = [
    "Role",
    "for_consumer",
    "for_java_admin",
    "for_librdkafka",
    "for_spark",
    "java_reader_settings",
    "read_committed",
]

Role = Literal["admin", "producer"]
# Spark's source refuses these options; the bridge implements them (see admin.start_offsets).
_NOT_FOR_SPARK = frozenset({"auto.offset.reset", "group.id"})


def for_spark(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the options of Spark's Kafka source for `properties`: `kafka.*`, read_committed unless they set another.

    `group.id` becomes `groupIdPrefix`: Spark's readers of one pipeline must not share a group, and an ACL
    on the prefix still permits them. `admin` reads the committed offsets of the group itself.
    Raises OptionError for a setting that is refused, without the value of a secret.
    """
    # Spark reads up to offsets that exist, and its readers then prefetch the records after them. The broker would delay
    # that request for half a second, and with it the next batch, which uses the same reader.
    options = {"kafka.isolation.level": "read_committed", "kafka.fetch.max.wait.ms": "10"}
    options |= {f"kafka.{key}": value for key, value in _for_java(properties, Client.READER).items()}
    if "group.id" in properties:
        options["groupIdPrefix"] = properties["group.id"]
    return options


def for_java_admin(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of Kafka's Java AdminClient for `properties`. Raises OptionError as `for_spark` does."""
    return _for_java(properties, Client.ADMIN)


def for_librdkafka(properties: Mapping[str, str], role: Role = "admin") -> dict[str, str]:
    """Return librdkafka's configuration for `properties`, without settings that `role` does not use.

    Raises OptionError for a setting that is refused, with the reason and the way out.
    """
    plain = _checked(properties)
    codec = plain.get("compression.type", "none")
    client = Client.PRODUCER if role == "producer" else Client.ADMIN
    options = {}
    for key, text in plain.items():
        setting = SETTINGS[key]
        if not setting.is_applied or setting.librdkafka is None or client not in setting.clients:
            continue
        if key not in LEVELS or key == f"compression.{codec}.level":
            options[setting.librdkafka] = setting.rdkafka(text)
    if role == "producer" and "request.timeout.ms" in plain:
        options["request.timeout.ms"] = options["socket.timeout.ms"]
    options |= (security_options := security.for_librdkafka(plain))
    if "ssl.key.pem" in security_options:
        options.pop("ssl.key.password", None)  # the key from the store is not encrypted
    return options


def for_consumer(topic: Topic) -> dict[str, Any]:
    """Return librdkafka's configuration of a consumer that reads `topic` by offset and never joins its group.

    Raises OptionError as `for_librdkafka` does.
    """
    return {
        **for_librdkafka(topic.properties),
        "group.id": topic.group,  # librdkafka requires one
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "isolation.level": "read_committed" if read_committed(topic.properties) else "read_uncommitted",
    }


def java_reader_settings(topic: Topic) -> tuple[str, ...]:
    """Return the settings of `topic` that apply to Spark's reader (Kafka's Java client) and to no other client."""
    return tuple(
        key
        for key in topic.properties
        if key not in ("group.id", "isolation.level", "auto.offset.reset")
        and SETTINGS[key].is_applied
        and SETTINGS[key].clients == {Client.READER}
    )


def read_committed(properties: Mapping[str, str]) -> bool:
    """Return False for `isolation.level` = `read_uncommitted`, else True; Kafka's default differs."""
    level = _text(properties.get("isolation.level", "read_committed"))
    return str(SETTINGS["isolation.level"].parse(level)) == "read_committed"


def _for_java(properties: Mapping[str, str], client: Client) -> dict[str, str]:
    plain = _checked(properties)
    options = {
        key: SETTINGS[key].java(text)
        for key, text in plain.items()
        if SETTINGS[key].is_applied and client in SETTINGS[key].clients and key not in _NOT_FOR_SPARK
    }
    return options | security.for_java(plain)


def _text(value: str) -> str:
    return value.reveal() if isinstance(value, Secret) else str(value)


def _checked(properties: Mapping[str, str]) -> dict[str, str]:
    plain = {key: _text(value).strip() for key, value in properties.items()}  # as Java does
    for key, text in plain.items():
        check_property(KAFKA, key, text, masked=isinstance(properties[key], Secret))
    check_combinations(plain, "none")
    return plain

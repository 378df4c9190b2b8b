"""Converts Kafka client settings, under their Java names, for the two clients of the bridge.

Spark's source (the Java client) reads records. librdkafka, whose names and ranges differ, does everything else.
`bridge.options.properties` lists for each setting which client gets it, and under which name. A setting that it refuses
is refused here, too, for topics without a pipeline file. Secrets become text here: never log what these functions
return.

For TLS and SASL, Java reads keys from stores and logs in through JAAS modules; librdkafka reads PEM, or a key in a
PKCS#12 file, and takes a user name and a password. Stores are converted in memory. A property without a counterpart is
refused with the way out: a security setting that has no effect in one of the clients is worse than none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from bridge.definition import Topic
from bridge.errors import OptionError
from bridge.key_stores import KeyStore, KeyStoreError, WrongPasswordError, read_key_store, store_type
from bridge.options.model import KAFKA
from bridge.options.properties import SETTINGS, Client, check_combinations, check_property, login
from bridge.options.properties.catalog import LEVELS
from bridge.options.properties.login import EXTENSION
from bridge.options.properties.sasl import HANDLER, jaas_text
from bridge.secret import Secret

_HANDLER = "sasl.login.callback.handler.class"
_ENDPOINT = "sasl.oauthbearer.token.endpoint.url"


def for_java(plain: Mapping[str, str]) -> dict[str, str]:
    """Return the settings whose values differ for Java's client, secrets in clear text.

    Names of Flink's shaded classes become Kafka's. A login by OAUTHBEARER with an endpoint requests its token there, as
    librdkafka does, even if the definition names no handler.
    """
    settings = {}
    if "sasl.jaas.config" in plain:
        settings["sasl.jaas.config"] = jaas_text(plain["sasl.jaas.config"])
    if (
        _HANDLER not in plain
        and plain.get("sasl.mechanism", "").strip().upper() == "OAUTHBEARER"
        and _ENDPOINT in plain
    ):
        settings[_HANDLER] = HANDLER
    return settings


def login_settings(plain: Mapping[str, str]) -> dict[str, str]:
    """Return librdkafka's settings for stores and login, secrets in clear text.

    Raises OptionError for a store that cannot be read."""
    return _truststore(plain) | _keystore(plain) | _login(plain)


def _store_type(plain: Mapping[str, str], store: str) -> str:
    """Return PEM where it is declared, else the type of the file's content; Java's JKS reads PKCS#12, too."""
    if plain.get(f"{store}.type", "").upper() == "PEM":
        return "PEM"
    try:
        type = store_type(plain[f"{store}.location"])
    except KeyStoreError as error:
        raise OptionError(f"'properties.{store}.location': the file {error}") from None
    if type == "PEM":
        raise OptionError(
            f"'properties.{store}.location' is a PEM file, which Java reads only with 'properties.{store}.type' "
            "= 'PEM'; set that"
        )
    return type


def _read_store(plain: Mapping[str, str], store: str) -> KeyStore:
    location, password = plain[f"{store}.location"], plain.get(f"{store}.password", "")
    try:
        return read_key_store(location, password, plain.get("ssl.key.password"))
    except KeyStoreError as error:
        option = (
            " ('properties.ssl.key.password')"
            if isinstance(error, WrongPasswordError) and error.of_key
            else ""
        )
        raise OptionError(f"'properties.{store}.location': the store {error}{option}") from None


def _truststore(plain: Mapping[str, str]) -> dict[str, str]:
    if "ssl.truststore.location" not in plain:
        return {}
    if _store_type(plain, "ssl.truststore") == "PEM":
        return {"ssl.ca.location": plain["ssl.truststore.location"]}
    trusted = _read_store(plain, "ssl.truststore").trusted
    if not trusted:
        raise OptionError("'properties.ssl.truststore.location': the store has no trusted certificate")
    return {"ssl.ca.pem": "".join(trusted)}


def _keystore(plain: Mapping[str, str]) -> dict[str, str]:
    if "ssl.keystore.location" not in plain:
        return {}
    location, type = plain["ssl.keystore.location"], _store_type(plain, "ssl.keystore")
    if type == "PEM":
        return {"ssl.certificate.location": location, "ssl.key.location": location}
    if type == "JKS":
        store = _read_store(plain, "ssl.keystore")
        if store.key is None:
            raise OptionError("'properties.ssl.keystore.location': the store has no private key")
        return {"ssl.key.pem": store.key, "ssl.certificate.pem": "".join(store.chain)}
    settings = {"ssl.keystore.location": location}
    if "ssl.keystore.password" in plain:
        settings["ssl.keystore.password"] = plain["ssl.keystore.password"]
    return settings


def _login(plain: Mapping[str, str]) -> dict[str, str]:
    credentials = login(plain)
    if credentials is None:
        return {}
    if credentials.mechanism == "OAUTHBEARER":
        settings = {"sasl.oauthbearer.method": "oidc"}
        names = {
            "clientId": "sasl.oauthbearer.client.id",
            "clientSecret": "sasl.oauthbearer.client.secret",
            "scope": "sasl.oauthbearer.scope",
        }
        extensions = [
            f"{name.removeprefix(EXTENSION)}={value}"
            for name, value in credentials.options.items()
            if name.startswith(EXTENSION)
        ]
        if extensions:
            settings["sasl.oauthbearer.extensions"] = ",".join(extensions)
    else:
        settings, names = {}, {"username": "sasl.username", "password": "sasl.password"}
    return settings | {
        target: credentials.options[name] for name, target in names.items() if name in credentials.options
    }


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
    options |= (security_options := login_settings(plain))
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
    return options | for_java(plain)


def _text(value: str) -> str:
    return value.reveal() if isinstance(value, Secret) else str(value)


def _checked(properties: Mapping[str, str]) -> dict[str, str]:
    plain = {key: _text(value).strip() for key, value in properties.items()}  # as Java does
    for key, text in plain.items():
        check_property(KAFKA, key, text, masked=isinstance(properties[key], Secret))
    check_combinations(plain, "none")
    return plain


_DEFAULTS = {
    "acks": "all",
    "batch.size": "1000000",
    "compression.type": "lz4",
    "linger.ms": "20",
    "message.max.bytes": "1048576",  # Java's default; librdkafka's is a little less
    "queue.buffering.max.kbytes": "65536",
    "queue.buffering.max.messages": "500000",
}


def producer_settings(user: Mapping[str, str], *, checked: bool) -> dict[str, Any]:
    """Return librdkafka's settings of a producer: `user` (librdkafka's names) over the bridge's defaults.

    Unless the user sets other `acks` or `enable.idempotence` = false, sending is idempotent, so a retry neither repeats
    nor reorders records. Without idempotence, one request at a time preserves the order. `checked` False
    ('sink.delivery-guarantee' = 'none') waits for the leader only, unless the user sets idempotence.
    """
    waits = checked or user.get("enable.idempotence") == "true"
    settings: dict[str, Any] = {**_DEFAULTS, **({} if waits else {"acks": "1"}), **user}
    idempotent = (
        settings["acks"] in ("all", "-1") and user.get("enable.idempotence", "true").lower() == "true"
    )
    settings["enable.idempotence"] = str(idempotent).lower()
    if not idempotent:
        settings.setdefault("max.in.flight.requests.per.connection", "1")
    # As Java's default partitioner (librdkafka's own is CRC32): all producers put a key into the same partition.
    settings["partitioner"] = "murmur2_random"
    settings["delivery.report.only.error"] = (
        True  # successes are counted by librdkafka, without a call of Python
    )
    return settings

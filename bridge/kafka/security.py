"""Converts TLS and SASL properties of the Java client for librdkafka.

Java reads keys from stores and logs in through JAAS modules; librdkafka reads PEM, or a key in a PKCS#12 file, and
takes a user name and a password. Stores are converted in memory. A property without a counterpart is refused with the
way out, because a security setting that has no effect in one of the clients is worse than none.
"""

from __future__ import annotations

from collections.abc import Mapping

from bridge.errors import OptionError
from bridge.key_stores import KeyStore, KeyStoreError, WrongPasswordError, read_key_store, store_type
from bridge.options.properties import login
from bridge.options.properties.jaas import jaas_text
from bridge.options.properties.login import EXTENSION
from bridge.options.properties.sasl import HANDLER

__all__ = ["for_java", "for_librdkafka"]

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


def for_librdkafka(plain: Mapping[str, str]) -> dict[str, str]:
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

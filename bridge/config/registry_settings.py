"""The options of a schema registry, in the words of its Python client.

Flink hands them to Confluent's Java client; those that client would ignore, and those this one cannot follow, are
refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from bridge.errors import OptionError
from bridge.secret import Secret

__all__ = ["RegistrySettings", "registry_settings"]

PREFIX = "properties."
_SECONDS = 10.0
_CLIENT = {
    "max.retries": 2,
    "retries.wait.ms": 200,
    "retries.max.wait.ms": 1000,
    "timeout": _SECONDS,
    # Its own default is for ever.
    "cache.latest.ttl.sec": 60,
}


@dataclass(frozen=True)
class RegistrySettings:
    """How a registry is reached and used. `shown` is its address without credentials, for messages."""

    shown: str
    client: tuple[tuple[str, Any], ...]
    """Settings of confluent-kafka's SchemaRegistryClient, stores excepted; secrets are `Secret`."""
    keystore: tuple[str, str | None] | None = None
    """Location and password of the client's own key."""
    truststore: tuple[str, str | None] | None = None
    auto_register: bool = True
    use_latest: bool = False
    normalize: bool = False


def registry_settings(options: Mapping[str, Any], prefix: str) -> RegistrySettings:
    """The settings that a registry format's options (keys without `prefix`) come to.

    Raises OptionError that names the option, with `prefix`, and shows no credentials.
    """
    reading = _SettingsReader(options, prefix)
    urls = reading.urls()
    reading.basic(urls)
    reading.bearer()
    reading.properties()
    for store in ("keystore", "truststore"):
        if f"ssl.{store}.password" in options and f"ssl.{store}.location" not in options:
            raise reading.error(f"ssl.{store}.password", f"it is of no use without 'ssl.{store}.location'")
    shown = ",".join(urlunsplit(u._replace(netloc=u.netloc.rpartition("@")[2])) for u in urls)
    return RegistrySettings(
        shown,
        tuple(sorted(reading.client.items())),
        reading.store("keystore"),
        reading.store("truststore"),
        **reading.flags,
    )


class _SettingsReader:
    def __init__(self, options: Mapping[str, Any], prefix: str) -> None:
        self.options, self.prefix = options, prefix
        self.client: dict[str, Any] = dict(_CLIENT)
        self.flags: dict[str, bool] = {}

    def error(self, key: str, words: str) -> OptionError:
        return OptionError(f"'{self.prefix}{key}': {words}")

    def urls(self) -> list[Any]:
        texts = [text.strip() for text in _plain(self.options["url"]).split(",")]
        found = [urlsplit(text) for text in texts]
        if not all(u.scheme in ("http", "https") and u.hostname for u in found):
            raise self.error(
                "url", "it must be http://host:port or https://host:port, or several with commas"
            )
        self.client["url"] = Secret(",".join(texts)) if any(u.username for u in found) else ",".join(texts)
        return found

    def basic(self, urls: list[Any]) -> None:
        key, info = "basic-auth.credentials-source", self.options.get("basic-auth.user-info")
        source = _plain(self.options.get(key, "USER_INFO" if info is not None else "URL")).upper()
        if source not in ("USER_INFO", "URL"):
            words = "the credentials of Kafka are not handed to the registry; use USER_INFO or URL"
            legal = "legal values are USER_INFO, URL"
            raise self.error(key, words if source == "SASL_INHERIT" else legal)
        if source == "URL" and info is not None:
            raise self.error("basic-auth.user-info", f"it is of no use with '{key}' = 'URL'")
        if source == "USER_INFO":
            if info is None or ":" not in _plain(info):
                raise self.error("basic-auth.user-info", "USER_INFO needs it, as <user>:<password>")
            if any(u.username for u in urls):
                raise self.error("basic-auth.user-info", "the url has credentials, too; remove one of them")
            self.client["basic.auth.user.info"] = Secret(_plain(info))

    def bearer(self) -> None:
        key, token = "bearer-auth.credentials-source", self.options.get("bearer-auth.token")
        if key not in self.options and token is None:
            return
        source = _plain(self.options.get(key, "STATIC_TOKEN")).upper()
        if source != "STATIC_TOKEN":
            raise self.error(key, "the bridge can send a token that is given: use STATIC_TOKEN")
        if token is None:
            raise self.error("bearer-auth.token", "STATIC_TOKEN needs it")
        if "basic.auth.user.info" in self.client:
            raise self.error(key, "basic credentials are given, too; remove one of them")
        self.client |= {
            "bearer.auth.credentials.source": "STATIC_TOKEN",
            "bearer.auth.token": Secret(_plain(token)),
            "bearer.auth.logical.cluster": "",
        }

    def properties(self) -> None:
        for name, text in self.options.items():
            if not name.startswith(PREFIX):
                continue
            key = name.removeprefix(PREFIX)
            if key not in _PROPERTIES:
                raise self.error(
                    name,
                    f"it is not a setting that the bridge can follow; it follows {', '.join(_PROPERTIES)}",
                )
            target, read = _PROPERTIES[key]
            if target.startswith("bearer.") and "bearer.auth.token" not in self.client:
                raise self.error(name, "it is of no use without 'bearer-auth.token'")
            try:
                value = read(_plain(text))
            except ValueError as error:
                raise self.error(name, f"its value must be {error}") from None
            if target in ("auto_register", "use_latest", "normalize"):
                self.flags[target] = value
            else:
                self.client[target] = value

    def store(self, store: str) -> tuple[str, str | None] | None:
        location, password = (
            self.options.get(f"ssl.{store}.location"),
            self.options.get(f"ssl.{store}.password"),
        )
        return None if location is None else (_plain(location), password)


def _plain(value: Any) -> str:
    return value.reveal() if isinstance(value, Secret) else str(value)


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("true or false")
    return text.lower() == "true"


def _integer(text: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", text):
        raise ValueError("a whole number")
    return int(text)


def _seconds(text: str) -> float:
    return _integer(text) / 1000


_PROPERTIES: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "auto.register.schemas": ("auto_register", _flag),
    "use.latest.version": ("use_latest", _flag),
    "normalize.schemas": ("normalize", _flag),
    "http.read.timeout.ms": ("timeout", _seconds),
    "max.retries": ("max.retries", _integer),
    "retries.wait.ms": ("retries.wait.ms", _integer),
    "retries.max.wait.ms": ("retries.max.wait.ms", _integer),
    "bearer.auth.logical.cluster": ("bearer.auth.logical.cluster", str),
    "bearer.auth.identity.pool.id": ("bearer.auth.identity.pool.id", str),
}
"""Settings of Confluent's Java client and serializer, and what they are here."""

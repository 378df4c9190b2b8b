"""Translates the options of a schema registry to settings of Confluent's Python client.

Flink passes the options to Confluent's Java client. Options that the Java client would ignore and options that the
Python client does not support are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from bridge.errors import OptionError
from bridge.secret import Secret

PREFIX = "properties."
_SECONDS = 10.0
_CLIENT = {
    "max.retries": 2,
    "retries.wait.ms": 200,
    "retries.max.wait.ms": 1000,
    "timeout": _SECONDS,
    # By default the client caches the latest version forever.
    "cache.latest.ttl.sec": 60,
}


@dataclass(frozen=True)
class RegistrySettings:
    """The settings of a schema registry. `shown` is its URL without credentials, for messages."""

    shown: str
    client: tuple[tuple[str, Any], ...]
    """Settings of confluent-kafka's SchemaRegistryClient, except for key and trust stores; secrets are `Secret`."""
    keystore: tuple[str, str | None] | None = None
    """Location and password of the key store."""
    truststore: tuple[str, str | None] | None = None
    auto_register: bool = True
    use_latest: bool = False
    normalize: bool = False


def registry_settings(options: Mapping[str, Any], prefix: str) -> RegistrySettings:
    """Returns the settings for the options of a registry format, whose keys have no `prefix`.

    Raises OptionError that names the option with `prefix` and shows no credentials.
    """
    reader = _SettingsReader(options, prefix)
    urls = reader.urls()
    reader.basic(urls)
    reader.bearer()
    reader.properties()
    for store in ("keystore", "truststore"):
        if f"ssl.{store}.password" in options and f"ssl.{store}.location" not in options:
            raise reader.error(
                f"ssl.{store}.password", f"it has no effect without 'ssl.{store}.location'; set both"
            )
    shown = ",".join(urlunsplit(u._replace(netloc=u.netloc.rpartition("@")[2])) for u in urls)
    return RegistrySettings(
        shown,
        tuple(sorted(reader.client.items())),
        reader.store("keystore"),
        reader.store("truststore"),
        **reader.flags,
    )


class _SettingsReader:
    """Translates the options of one registry format; each method reads a group of them."""

    def __init__(self, options: Mapping[str, Any], prefix: str) -> None:
        self.options, self.prefix = options, prefix
        self.client: dict[str, Any] = dict(_CLIENT)
        self.flags: dict[str, bool] = {}

    def error(self, key: str, problem: str) -> OptionError:
        return OptionError(f"'{self.prefix}{key}': {problem}")

    def urls(self) -> list[Any]:
        texts = [text.strip() for text in _plain(self.options["url"]).split(",")]
        urls = [urlsplit(text) for text in texts]
        if not all(u.scheme in ("http", "https") and u.hostname for u in urls):
            raise self.error(
                "url", "it must be http://host:port or https://host:port; separate several URLs with commas"
            )
        self.client["url"] = Secret(",".join(texts)) if any(u.username for u in urls) else ",".join(texts)
        return urls

    def basic(self, urls: list[Any]) -> None:
        key, info = "basic-auth.credentials-source", self.options.get("basic-auth.user-info")
        source = _plain(self.options.get(key, "USER_INFO" if info is not None else "URL")).upper()
        if source not in ("USER_INFO", "URL"):
            inherits = "SASL_INHERIT is not supported: Kafka's credentials are not sent to the registry; "
            raise self.error(
                key, f"{inherits if source == 'SASL_INHERIT' else ''}legal values are USER_INFO, URL"
            )
        if source == "URL" and info is not None:
            raise self.error("basic-auth.user-info", f"it has no effect with '{key}' = 'URL'; remove it")
        if source == "USER_INFO":
            if info is None or ":" not in _plain(info):
                raise self.error("basic-auth.user-info", "USER_INFO requires it; set it to <user>:<password>")
            if any(u.username for u in urls):
                raise self.error(
                    "basic-auth.user-info", "the URL also contains credentials; remove one of them"
                )
            self.client["basic.auth.user.info"] = Secret(_plain(info))

    def bearer(self) -> None:
        key, token = "bearer-auth.credentials-source", self.options.get("bearer-auth.token")
        if key not in self.options and token is None:
            return
        source = _plain(self.options.get(key, "STATIC_TOKEN")).upper()
        if source != "STATIC_TOKEN":
            raise self.error(key, "the only legal value is STATIC_TOKEN")
        if token is None:
            raise self.error("bearer-auth.token", "STATIC_TOKEN requires it; set it to the token")
        if "basic.auth.user.info" in self.client:
            raise self.error(key, "credentials for basic authentication are also set; remove one of them")
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
                    f"the bridge does not support this setting; legal settings are {', '.join(_PROPERTIES)}",
                )
            target, read = _PROPERTIES[key]
            if target.startswith("bearer.") and "bearer.auth.token" not in self.client:
                raise self.error(name, "it has no effect without 'bearer-auth.token'; set both")
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
"""Settings of Confluent's Java client and serializer, with their Python counterparts and parsers."""

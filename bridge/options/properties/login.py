"""Resolves the SASL settings to a login that both clients support."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bridge.errors import OptionError
from bridge.options.properties.sasl import parse_jaas

EXTENSION = "extension_"
"""What begins the names of OAUTHBEARER's extensions in a JAAS configuration (a logical cluster, an identity pool)."""

_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}
_DATABRICKS = "kafkashaded."  # package of Kafka's classes on Databricks
_USER = ("username", "password")
_NEEDED = {"OAUTHBEARER": ("clientId", "clientSecret")}
_KNOWN = {"OAUTHBEARER": ("clientId", "clientSecret", "scope")}
_ENDPOINT = "sasl.oauthbearer.token.endpoint.url"


@dataclass(frozen=True)
class Login:
    """A SASL mechanism that both clients support, with the options of its login module."""

    mechanism: str
    options: Mapping[str, str] = field(repr=False)


def login(settings: Mapping[str, str]) -> Login | None:
    """Returns the login of `settings` (Java names, secrets in clear text); None without SASL in `security.protocol`.

    Raises OptionError that shows no secret for a login that one of the clients does not support.
    """
    parsed = parse_jaas(settings["sasl.jaas.config"]) if "sasl.jaas.config" in settings else None
    if not settings.get("security.protocol", "").strip().upper().startswith("SASL_"):
        return None
    mechanism = settings.get("sasl.mechanism", "GSSAPI").strip().upper()
    if mechanism not in _MODULES:
        raise OptionError(
            f"'properties.sasl.mechanism' = '{mechanism}' is refused: librdkafka as built for confluent-kafka, with "
            "which the bridge sends records and looks up offsets, does not support it; use one of "
            f"{', '.join(_MODULES)}"
        )
    if "sasl.login.callback.handler.class" in settings and mechanism != "OAUTHBEARER":
        raise OptionError(
            "'properties.sasl.login.callback.handler.class' is refused: librdkafka cannot load a Java class to log in "
            f"with {mechanism}; remove it"
        )
    if parsed is None:
        raise OptionError(
            f"'properties.sasl.jaas.config' is missing; set it to the credentials for {mechanism}"
        )
    module, _, options = parsed
    if module.removeprefix(_DATABRICKS) != _MODULES[mechanism]:
        raise OptionError(
            f"'properties.sasl.jaas.config' names {module}, but 'properties.sasl.mechanism' = '{mechanism}' "
            f"requires {_MODULES[mechanism]}"
        )
    for name in _NEEDED.get(mechanism, _USER):
        if not options.get(name):
            raise OptionError(f"'properties.sasl.jaas.config' has no '{name}', which {mechanism} requires")
    _check_options(mechanism, options)
    if mechanism == "OAUTHBEARER" and _ENDPOINT not in settings:
        raise OptionError(
            f"'properties.{_ENDPOINT}' is missing; set it to the endpoint from which OAUTHBEARER fetches its token"
        )
    return Login(mechanism, options)


def _check_options(mechanism: str, options: Mapping[str, str]) -> None:
    known, extensions = _KNOWN.get(mechanism, _USER), mechanism == "OAUTHBEARER"
    for name, value in options.items():
        if extensions and name.startswith(EXTENSION):
            if "," in value:
                raise OptionError(
                    f"'properties.sasl.jaas.config': the value of '{name}' has a comma, with which librdkafka "
                    "separates extensions; the bridge cannot pass it on"
                )
        elif name not in known:
            legal = ", ".join((*known, f"{EXTENSION}...") if extensions else known)
            raise OptionError(
                f"'properties.sasl.jaas.config': option '{name}' is refused, because librdkafka, with which the bridge "
                f"sends records and looks up offsets, has nothing like it; {mechanism} takes {legal}; remove it"
            )

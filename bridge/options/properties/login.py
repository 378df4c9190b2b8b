"""Who logs in: what the settings of SASL ask together, of both clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bridge.errors import OptionError
from bridge.options.properties.jaas import parse_jaas

__all__ = ["Login", "login"]

_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}
_DATABRICKS = "kafkashaded."  # there Spark's Kafka classes lie in this package, and definitions say so
_NEEDED = {"OAUTHBEARER": ("clientId", "clientSecret")}
_ENDPOINT = "sasl.oauthbearer.token.endpoint.url"


@dataclass(frozen=True)
class Login:
    """A mechanism that both clients have, and what it takes."""

    mechanism: str
    options: Mapping[str, str] = field(repr=False)


def login(settings: Mapping[str, str]) -> Login | None:
    """The login of these settings (Java names, secrets in clear); None where `security.protocol` asks for none.

    Raises OptionError, without any secret, for a login that one of the clients could not do.
    """
    parsed = parse_jaas(settings["sasl.jaas.config"]) if "sasl.jaas.config" in settings else None
    if not settings.get("security.protocol", "").strip().upper().startswith("SASL_"):
        return None
    mechanism = settings.get("sasl.mechanism", "GSSAPI").strip().upper()
    if mechanism not in _MODULES:
        raise OptionError(
            f"'properties.sasl.mechanism' = '{mechanism}' is refused: the librdkafka in confluent-kafka's wheels, "
            f"which sends, and asks for offsets in an ingest, has no such login; use one of {', '.join(_MODULES)}"
        )
    if "sasl.login.callback.handler.class" in settings and mechanism != "OAUTHBEARER":
        raise OptionError(
            "'properties.sasl.login.callback.handler.class' is refused: a Java class cannot log librdkafka "
            f"in with {mechanism}; leave it out"
        )
    if parsed is None:
        raise OptionError(
            f"'properties.sasl.jaas.config' is missing; {mechanism} takes the credentials from it"
        )
    module, _, options = parsed
    if module.removeprefix(_DATABRICKS) != _MODULES[mechanism]:
        raise OptionError(
            f"'properties.sasl.jaas.config' names {module}, but 'properties.sasl.mechanism' = '{mechanism}' "
            f"needs {_MODULES[mechanism]}"
        )
    for name in _NEEDED.get(mechanism, ("username", "password")):
        if not options.get(name):
            raise OptionError(f"'properties.sasl.jaas.config' has no '{name}', which {mechanism} needs")
    if mechanism == "OAUTHBEARER" and _ENDPOINT not in settings:
        raise OptionError(f"'properties.{_ENDPOINT}' is missing; OAUTHBEARER fetches its token there")
    return Login(mechanism, options)

"""TLS and SASL properties of the Java client, for librdkafka.

Java keeps keys in stores and logs in through JAAS modules; librdkafka reads PEM, or a key in a PKCS#12 file, and
takes a user name and a password. Stores are converted in memory. What has no counterpart is refused with the way
out, because a security setting that silently does nothing on one side is worse than none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from bridge.errors import OptionError
from bridge.kafka import stores

__all__ = ["KEYS", "for_java", "for_librdkafka", "jaas_for_java", "parse_jaas"]

_SAME = {
    "security.protocol": "security.protocol",
    "ssl.key.password": "ssl.key.password",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "sasl.oauthbearer.token.endpoint.url": "sasl.oauthbearer.token.endpoint.url",
}
_OTHER = (
    "sasl.jaas.config",
    "sasl.mechanism",
    "sasl.login.callback.handler.class",
    "ssl.endpoint.identification.algorithm",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
)
KEYS = frozenset([*_SAME, *_OTHER])
"""The properties this module translates; the bridge accepts no other `ssl.*` or `sasl.*`."""

_LOGIN_MODULES = {
    "PLAIN": "PlainLoginModule",
    "SCRAM-SHA-256": "ScramLoginModule",
    "SCRAM-SHA-512": "ScramLoginModule",
    "OAUTHBEARER": "OAuthBearerLoginModule",
}
# Flink's SQL jar moves Kafka's classes to this package; definitions are pasted from there.
_FLINK_SHADING = "org.apache.flink.kafka.shaded."
_HANDLER = "sasl.login.callback.handler.class"
_ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
_CONTROL = {"n": "\n", "r": "\r", "t": "\t"}
_HEAD = re.compile(r"\s*([\w.$]+)\s+(required|requisite|sufficient|optional)\b(.*?);?\s*$", re.S | re.I)
_PAIR = re.compile(
    r"""\s* ([\w.-]+) \s*=\s* (?:
        \\"(?P<pasted>.*?)\\"
        | "(?P<double>(?:[^"\\]|\\.)*)"
        | '(?P<single>(?:[^'\\]|\\.)*)'
        | (?P<bare>[^\s;"'\\]+)
    )""",
    re.S | re.X,
)


def parse_jaas(text: str) -> tuple[str, str, dict[str, str]]:
    """The login module, its flag and its options, of a `sasl.jaas.config` with one module.

    Values may be quoted with `"` or `'`, with backslash escapes inside; `\\"` around a value, as the examples
    of Flink's manual show it, counts as a quote. Raises OptionError without repeating any of the text.
    """
    head = _HEAD.match(text)
    if head is None:
        raise OptionError(
            "'properties.sasl.jaas.config' must read: <login module> required "
            'username="..." password="...";'
        )
    module, flag, rest = head.groups()
    options: dict[str, str] = {}
    at = 0
    while at < len(rest.rstrip()):
        pair = _PAIR.match(rest, at)
        if pair is None:
            after = list(options)[-1] if options else "the flag"
            raise OptionError(
                f"'properties.sasl.jaas.config' cannot be read after {after}: name=\"value\" expected"
            )
        quoted = pair["double"] if pair["double"] is not None else pair["single"]
        value = _unescape(quoted) if quoted is not None else pair["pasted"]
        options[pair[1]] = pair["bare"] if value is None else value
        at = pair.end()
    return module.removeprefix(_FLINK_SHADING), flag, options


def for_java(plain: Mapping[str, str]) -> dict[str, str]:
    """The settings among Java's `KEYS` that its client must be told differently, secrets in clear.

    Names of Flink's shaded classes become Kafka's, and a login by OAUTHBEARER with an endpoint asks there for its
    token, as librdkafka does, even where the definition names no handler.
    """
    made = {}
    if "sasl.jaas.config" in plain:
        made["sasl.jaas.config"] = jaas_for_java(plain["sasl.jaas.config"])
    if _HANDLER in plain:
        made[_HANDLER] = plain[_HANDLER].removeprefix(_FLINK_SHADING)
    elif plain.get("sasl.mechanism", "").upper() == "OAUTHBEARER" and _ENDPOINT in plain:
        made[_HANDLER] = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
    return made


def jaas_for_java(text: str) -> str:
    """The same configuration, as Kafka's Java client reads it."""
    module, flag, options = parse_jaas(text)
    return f"{module} {flag}" + "".join(f' {k}="{_escape(v)}"' for k, v in options.items()) + ";"


def _unescape(quoted: str) -> str:
    return re.sub(r"\\(.)", lambda m: _CONTROL.get(m[1], m[1]), quoted, flags=re.S)


def _escape(value: str) -> str:
    letters = {control: "\\" + letter for letter, control in _CONTROL.items()}
    return "".join(letters.get(c, "\\" + c if c in '"\\' else c) for c in value)


def for_librdkafka(plain: Mapping[str, str]) -> dict[str, str]:
    """librdkafka's settings for Java's `KEYS`, secrets in clear. Raises OptionError for what it cannot do."""
    made = {_SAME[key]: value for key, value in plain.items() if key in _SAME}
    made |= _truststore(plain) | (keys := _keystore(plain)) | _sasl(plain)
    if "ssl.key.pem" in keys:
        made.pop("ssl.key.password", None)  # the key has been taken out of its store
    if "ssl.endpoint.identification.algorithm" in plain:
        made["ssl.endpoint.identification.algorithm"] = (
            plain["ssl.endpoint.identification.algorithm"].lower() or "none"
        )
    return made


def _kind(plain: Mapping[str, str], store: str) -> str:
    """PEM where it is declared, else what the file itself says: so does Java, whose JKS opens PKCS#12 as well."""
    if plain.get(f"{store}.type", "").upper() == "PEM":
        return "PEM"
    try:
        found = stores.kind(plain[f"{store}.location"])
    except stores.StoreError as failed:
        raise OptionError(f"'properties.{store}.location': the file {failed}") from None
    if found == "PEM":
        raise OptionError(
            f"'properties.{store}.location' is a PEM file, which Java reads only with 'properties.{store}.type' "
            "= 'PEM'; set that"
        )
    return found


def _opened(plain: Mapping[str, str], store: str) -> stores.Store:
    location, password = plain[f"{store}.location"], plain.get(f"{store}.password", "")
    try:
        return stores.read(location, password, plain.get("ssl.key.password"))
    except stores.StoreError as failed:
        raise OptionError(f"'properties.{store}.location': the store {failed}") from None


def _truststore(plain: Mapping[str, str]) -> dict[str, str]:
    if "ssl.truststore.location" not in plain:
        return {}
    if _kind(plain, "ssl.truststore") == "PEM":
        if "ssl.truststore.password" in plain:
            raise OptionError(
                "'properties.ssl.truststore.password' is refused: a PEM file has none; leave it out"
            )
        return {"ssl.ca.location": plain["ssl.truststore.location"]}
    trusted = _opened(plain, "ssl.truststore").trusted
    if not trusted:
        raise OptionError("'properties.ssl.truststore.location': the store holds no trusted certificate")
    return {"ssl.ca.pem": trusted}


def _keystore(plain: Mapping[str, str]) -> dict[str, str]:
    if "ssl.keystore.location" not in plain:
        return {}
    location, kind = plain["ssl.keystore.location"], _kind(plain, "ssl.keystore")
    if kind == "PEM":
        return {"ssl.certificate.location": location, "ssl.key.location": location}
    if kind == "JKS":
        store = _opened(plain, "ssl.keystore")
        if store.key is None or store.chain is None:
            raise OptionError("'properties.ssl.keystore.location': the store holds no private key")
        return {"ssl.key.pem": store.key, "ssl.certificate.pem": store.chain}
    made = {"ssl.keystore.location": location}
    if "ssl.keystore.password" in plain:
        made["ssl.keystore.password"] = plain["ssl.keystore.password"]
    return made


def _sasl(plain: Mapping[str, str]) -> dict[str, str]:
    if not plain.get("security.protocol", "").upper().startswith("SASL_"):
        return {}
    mechanism = plain.get("sasl.mechanism", "GSSAPI").upper()
    if mechanism not in _LOGIN_MODULES:
        raise OptionError(
            f"'properties.sasl.mechanism' = '{mechanism}' is refused: the librdkafka in confluent-kafka's "
            f"wheels has no such login; use one of {', '.join(_LOGIN_MODULES)}"
        )
    if "sasl.login.callback.handler.class" in plain and mechanism != "OAUTHBEARER":
        raise OptionError(
            "'properties.sasl.login.callback.handler.class' is refused: a Java class cannot log librdkafka "
            f"in with {mechanism}; leave it out"
        )
    if "sasl.jaas.config" not in plain:
        raise OptionError(
            f"'properties.sasl.jaas.config' is missing; {mechanism} takes the credentials from it"
        )
    module, _, options = parse_jaas(plain["sasl.jaas.config"])
    if module.rpartition(".")[2] != _LOGIN_MODULES[mechanism]:
        raise OptionError(
            f"'properties.sasl.jaas.config' names {module}, but 'properties.sasl.mechanism' = '{mechanism}' "
            f"needs {_LOGIN_MODULES[mechanism]}"
        )
    made = {"sasl.mechanism": mechanism}
    if mechanism == "OAUTHBEARER":
        made["sasl.oauthbearer.method"] = "oidc"
        wanted = {
            "clientId": "sasl.oauthbearer.client.id",
            "clientSecret": "sasl.oauthbearer.client.secret",
            "scope": "sasl.oauthbearer.scope",
        }
    else:
        wanted = {"username": "sasl.username", "password": "sasl.password"}
    for name, target in wanted.items():
        if name in options:
            made[target] = options[name]
        elif name != "scope":
            raise OptionError(f"'properties.sasl.jaas.config' has no '{name}', which {mechanism} needs")
    return made

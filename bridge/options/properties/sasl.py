"""Settings of SASL logins. Rules between them are in `login`."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from bridge.errors import OptionError
from bridge.options.kinds import Kind, choice
from bridge.options.properties.model import (
    ALL_CLIENTS,
    LONG_MAX,
    NAME,
    TEXT,
    Setting,
    Treatment,
    all_clients,
    ignored,
    integer,
    java_clients_only,
    refused,
)

HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
"""The handler with which Kafka's Java client fetches its token from an endpoint."""

_OLD_HANDLER = HANDLER.replace("oauthbearer.", "oauthbearer.secured.")
_CLASS = (
    "librdkafka, with which the bridge sends records and looks up offsets, cannot load Java classes; log in with "
    "PLAIN, SCRAM or OAUTHBEARER, and remove it"
)
_KERBEROS = "the bridge does not support GSSAPI (Kerberos), so it would have no effect; remove it"
_BROKER = "brokers use it to validate tokens; clients only fetch them"
_OPTION = "the Kafka client of Spark's reader does not have it yet; set '{}' in 'properties.sasl.jaas.config'"
_ASSERTION = (
    "the Kafka client of Spark's reader does not have it yet; log in with 'clientId' and 'clientSecret' in "
    "'properties.sasl.jaas.config'"
)


def _url(text: str) -> str:
    at = urlsplit(text)
    if at.scheme not in ("http", "https") or not at.hostname:
        raise ValueError(text)
    return text


def _handler(text: str) -> str:
    name = text.removeprefix(_FLINK_SHADING)
    if name.removeprefix("kafkashaded.") not in (HANDLER, _OLD_HANDLER):
        raise ValueError(text)
    return name.replace("oauthbearer.secured.", "oauthbearer.")


def _fraction(low: float, high: float) -> Kind[float]:
    legal = f"a number from {low} to {high}"

    def parse(text: str) -> float:
        if not re.fullmatch(r"[+]?[0-9]{0,9}(\.[0-9]{0,17})?", text) or not re.search("[0-9]", text):
            raise ValueError(legal)
        if not low <= float(text) <= high:
            raise ValueError(legal)
        return float(text)

    return Kind("Double", parse, legal)


_HANDLERS: Kind[str] = Kind("Class", _handler, HANDLER)
_URL: Kind[str] = Kind("String", _url, "a URL like https://host/path")
_LONG = integer(0, LONG_MAX)
_MECHANISMS = choice("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")

SASL: tuple[Setting, ...] = (
    Setting(
        "sasl.mechanism",
        _MECHANISMS,
        Treatment.HONOURED,
        ALL_CLIENTS,
        "sasl.mechanism",
        reason="GSSAPI is refused if 'properties.security.protocol' is SASL_PLAINTEXT or SASL_SSL",
    ),
    Setting(
        "sasl.jaas.config",
        NAME,
        Treatment.TRANSLATED,
        ALL_CLIENTS,
        reason="librdkafka receives its options: user name and password, or client id, client secret, scope and "
        "extension_...; others are refused",
    ),
    Setting(
        "sasl.login.callback.handler.class",
        _HANDLERS,
        Treatment.TRANSLATED,
        ALL_CLIENTS,
        reason="for OAUTHBEARER only; librdkafka fetches the token from the endpoint itself",
    ),
    all_clients("sasl.oauthbearer.token.endpoint.url", _URL),
    all_clients("sasl.oauthbearer.sub.claim.name", NAME),
    refused("sasl.oauthbearer.scope.claim.name", "librdkafka supports only the default; remove it", "scope"),
    refused(
        "sasl.oauthbearer.header.urlencode",
        "librdkafka sends the client id and secret without URL encoding; remove it",
        "false",
    ),
    ignored("sasl.oauthbearer.clock.skew.seconds", integer(0), _BROKER),
    ignored("sasl.oauthbearer.expected.audience", TEXT, _BROKER),
    ignored("sasl.oauthbearer.expected.issuer", TEXT, _BROKER),
    ignored("sasl.oauthbearer.jwks.endpoint.refresh.ms", _LONG, _BROKER),
    ignored("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", _LONG, _BROKER),
    ignored("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", _LONG, _BROKER),
    ignored("sasl.oauthbearer.jwks.endpoint.url", _URL, _BROKER),
    *(
        refused(f"sasl.oauthbearer.{name}", _OPTION.format(option))
        for name, option in (
            ("client.credentials.client.id", "clientId"),
            ("client.credentials.client.secret", "clientSecret"),
            ("scope", "scope"),
        )
    ),
    *(
        refused(f"sasl.oauthbearer.{name}", _ASSERTION)
        for name in (
            "assertion.algorithm",
            "assertion.claim.aud",
            "assertion.claim.exp.seconds",
            "assertion.claim.iss",
            "assertion.claim.jti.include",
            "assertion.claim.nbf.seconds",
            "assertion.claim.sub",
            "assertion.file",
            "assertion.private.key.file",
            "assertion.private.key.passphrase",
            "assertion.template.file",
        )
    ),
    refused("sasl.oauthbearer.jwt.retriever.class", _CLASS),
    refused("sasl.oauthbearer.jwt.validator.class", _CLASS),
    refused("sasl.client.callback.handler.class", _CLASS),
    refused("sasl.login.class", _CLASS),
    java_clients_only("sasl.login.connect.timeout.ms", integer(0)),
    java_clients_only("sasl.login.read.timeout.ms", integer(0)),
    java_clients_only("sasl.login.refresh.buffer.seconds", integer(0, 3600)),
    java_clients_only("sasl.login.refresh.min.period.seconds", integer(0, 900)),
    java_clients_only("sasl.login.refresh.window.factor", _fraction(0.5, 1.0)),
    java_clients_only("sasl.login.refresh.window.jitter", _fraction(0.0, 0.25)),
    java_clients_only("sasl.login.retry.backoff.max.ms", _LONG, "default: 10000"),
    java_clients_only(
        "sasl.login.retry.backoff.ms",
        _LONG,
        "must not be greater than 'properties.sasl.login.retry.backoff.max.ms'",
    ),
    refused("sasl.kerberos.kinit.cmd", _KERBEROS, "/usr/bin/kinit"),
    refused("sasl.kerberos.min.time.before.relogin", _KERBEROS, "60000"),
    refused("sasl.kerberos.service.name", _KERBEROS),
    refused("sasl.kerberos.ticket.renew.jitter", _KERBEROS, "0.05"),
    refused("sasl.kerberos.ticket.renew.window.factor", _KERBEROS, "0.8"),
)


_FLINK_SHADING = "org.apache.flink.kafka.shaded."
"""Package of Kafka's classes in Flink's SQL jar; pipelines copied from Flink name it."""

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
    """Returns the login module, its flag and its options from a `sasl.jaas.config` with one module.

    Values may be quoted with `"` or `'`, with backslash escapes inside. `\\"` around a value, as in the examples
    of Flink's manual, counts as a quote. Raises OptionError that quotes no part of the text.
    """
    head = _HEAD.match(text)
    if head is None:
        raise OptionError(
            "'properties.sasl.jaas.config' must have the form: <login module> required "
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
                f"'properties.sasl.jaas.config' cannot be parsed after {after}: name=\"value\" is expected"
            )
        quoted = pair["double"] if pair["double"] is not None else pair["single"]
        value = _unescape(quoted) if quoted is not None else pair["pasted"]
        options[pair[1]] = pair["bare"] if value is None else value
        at = pair.end()
    return module.removeprefix(_FLINK_SHADING), flag, options


def jaas_text(text: str) -> str:
    """Returns the configuration in the form that Kafka's Java client parses."""
    module, flag, options = parse_jaas(text)
    return f"{module} {flag}" + "".join(f' {k}="{_escape(v)}"' for k, v in options.items()) + ";"


def _unescape(quoted: str) -> str:
    return re.sub(r"\\(.)", lambda m: _CONTROL.get(m[1], m[1]), quoted, flags=re.S)


def _escape(value: str) -> str:
    letters = {control: "\\" + letter for letter, control in _CONTROL.items()}
    return "".join(letters.get(c, "\\" + c if c in '"\\' else c) for c in value)

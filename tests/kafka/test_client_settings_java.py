"""The real clients accept what `validate` accepts, and `validate` gives a reason for each refusal."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridge.config import resolve_topic
from bridge.definition import Topic
from bridge.errors import OptionError
from bridge.kafka.client_settings import for_java_admin, for_librdkafka, for_spark, producer_settings
from bridge.kafka.transactions import transactional_settings
from bridge.options.kinds import Kind
from bridge.options.properties import SETTINGS, Client, Setting, Treatment
from tests.config.tables import kafka
from tests.kafka.certificates import Authority
from tests.kafka.java_clients import JavaClients, java_clients

_log = logging.getLogger("tests.quiet")
_log.addHandler(logging.NullHandler())
_log.propagate = False
_log.setLevel(logging.CRITICAL)  # without a broker librdkafka logs errors

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_SCRAM = "org.apache.flink.kafka.shaded.org.apache.kafka.common.security.scram.ScramLoginModule required"
_BEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
_SECRET = "hunter2"
_JAAS = [
    f'{_PLAIN} username="u" password="{_SECRET}";',
    f"{_SCRAM} username='u' password='{_SECRET}';",
    f'{_BEARER} clientId="c" clientSecret="{_SECRET}";',
    f'{_PLAIN} username="u";',
    f'{_PLAIN} username="" password="{_SECRET}";',
    f'{_PLAIN} username="u" password="{_SECRET}',
    "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true;",
    f"example.PlainLoginModule required username=u password={_SECRET};",
    _SECRET,
    "",
]
_NUMBERS = """-2 -1 0 1 2 5 6 9 10 12 13 17 22 23 999 1000 1001 1023 1024 3600 3601 10000 20000 60000 60101 300000
    300001 900000 900001 3600000 3600001 100000000 100000001 1000000001 2147483647 2147483648 2199023255552
    9223372036854775807 9223372036854775808 1.5 +7 1_000 soon""".split()
_FRACTIONS = ["-0.1", "0", "0.25", "0.3", ".5", "0.5", "1.0", "1.", "1.1", "1e-1", "NaN", "x", ""]
_OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
_TEXTS = {
    "bootstrap.servers": ["127.0.0.1:1", "127.0.0.1:1,127.0.0.1:2", "localhost", "[::1]:9"],
    "sasl.jaas.config": _JAAS,
    "sasl.login.callback.handler.class": [
        _OAUTH,
        f"org.apache.flink.kafka.shaded.{_OAUTH}",
        _OAUTH.replace("oauthbearer.", "oauthbearer.secured."),
        "example.Handler",
    ],
    "sasl.oauthbearer.token.endpoint.url": ["http://127.0.0.1:1/token", "nonsense", "file:/etc/token", ""],
    "sasl.oauthbearer.jwks.endpoint.url": ["https://127.0.0.1/keys", "nonsense"],
    "ssl.endpoint.identification.algorithm": ["https", "HTTPS", "", "none"],
    "ssl.enabled.protocols": ["TLSv1.2", "TLSv1.3, TLSv1.2", "SSLv3"],
    "partition.assignment.strategy": ["org.apache.kafka.clients.consumer.RangeAssignor", "errorStrategy"],
}
_FILES = frozenset({"ssl.keystore.location", "ssl.truststore.location"})


@pytest.fixture(scope="module")
def java() -> Iterator[JavaClients]:
    """The Java client of Spark's reader."""
    with java_clients("spark") as clients:
        yield clients


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Values of the settings that hold PEM text."""
    authority = Authority(tmp_path_factory.mktemp("pem"), "ca")
    both = [Path(authority.issue(name)).read_text() for name in ("me", "other")]
    keys = [re.findall(r"-----BEGIN PRIVATE KEY.*?END PRIVATE KEY-----\n", text, re.S)[0] for text in both]
    chains = [text.replace(key, "") for text, key in zip(both, keys, strict=True)]
    rsa = keys[0].replace("PRIVATE KEY", "RSA PRIVATE KEY")
    return {
        "ssl.truststore.certificates": [authority.pem.read_text(), "-----BEGIN", ""],
        "ssl.keystore.key": [*keys, rsa, "-----BEGIN"],
        "ssl.keystore.certificate.chain": [*chains, keys[0]],
    }


@pytest.mark.parametrize("name", ["spark", "broker"])
def test_every_setting_that_java_knows_is_in_the_table(name: str) -> None:
    with java_clients(name) as clients:
        assert clients.names() - set(SETTINGS) == set()


def test_the_table_has_no_unknown_setting(java: JavaClients) -> None:
    """librdkafka knows its own names of the settings that clients get."""
    with java_clients("broker") as newer:
        known = java.names() | newer.names()
    applied = {s.key for s in SETTINGS.values() if s.is_applied and s.clients & {Client.READER, Client.ADMIN}}
    assert applied - known == set()
    assert {s.key for s in SETTINGS.values() if s.is_applied} - known == set()


def _values(setting: Setting) -> list[str]:
    kind: Kind[object] = setting.kind
    if setting.key in _TEXTS:
        return _TEXTS[setting.key]
    if kind.name in ("Integer", "Long"):
        return _NUMBERS
    if kind.name == "Double":
        return _FRACTIONS
    if kind.legal.startswith("one of "):
        legal = kind.legal.removeprefix("one of ").split(", ")
        return [*legal, legal[0].upper(), legal[0].lower(), "errorStrategy", ""]
    if kind.name == "Boolean":
        return ["true", "false", "TRUE", " false ", "yes", ""]
    return ["x", "", " ", "a b", *([setting.default] if setting.default else [])]


def _topic(properties: dict[str, str], guarantee: str) -> Topic:
    more = {f"properties.{key}": value for key, value in properties.items()}
    more |= {"format": "json", "sink.delivery-guarantee": guarantee, "sink.transactional-id-prefix": "p"}
    table = kafka("id INT")
    return resolve_topic(replace(table, options={**table.options, **more}))


def _judge(java: JavaClients, given: dict[str, str], guarantee: str) -> bool:
    """Whether `validate` accepts these; fails where a client is of another opinion, or a refusal gives no reason."""
    properties = {"bootstrap.servers": "127.0.0.1:1", **given}
    try:
        topic = _topic(properties, guarantee)
    except OptionError as refused:
        message = str(refused)
        assert "'properties." in message and len(message) > 40
        assert _SECRET not in message
        return False
    sender = producer_settings(for_librdkafka(topic.properties, "producer"), checked=guarantee != "none")
    if guarantee == "exactly-once":
        sender = transactional_settings(sender, "p")
    admin = for_librdkafka(topic.properties)
    group = {"group.id": topic.group, "enable.auto.commit": False, "session.timeout.ms": 6000}
    Producer(sender, logger=_log)
    AdminClient({**admin}, logger=_log)
    Consumer({**admin, **group}, logger=_log).close()
    reader = {k.removeprefix("kafka."): v for k, v in for_spark(topic.properties).items() if "." in k}
    oauth = properties.get("sasl.mechanism", "").upper() == "OAUTHBEARER"  # it would log in when it is made
    refusal = java.refusal(
        {**reader, "group.id": topic.group}, for_java_admin(topic.properties), whole=not oauth
    )
    assert refusal is None
    return True


_SECURE = [key for key in SETTINGS if key.startswith(("ssl.", "sasl.", "security.")) and key not in _FILES]
_OTHERS = [key for key in SETTINGS if not key.startswith(("ssl.", "sasl.", "security.", "bootstrap."))]


@given(data=st.data())
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_accepted_the_clients_accept(java: JavaClients, data: st.DataObject) -> None:
    keys = data.draw(st.lists(st.sampled_from(_OTHERS), min_size=1, max_size=4, unique=True))
    chosen = {key: data.draw(st.sampled_from(_values(SETTINGS[key])), label=key) for key in keys}
    _judge(java, chosen, data.draw(st.sampled_from(["none", "at-least-once", "exactly-once"])))


@given(data=st.data())
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_login_that_is_accepted_the_clients_accept(
    java: JavaClients, pem: dict[str, list[str]], data: st.DataObject
) -> None:
    chosen = {
        "security.protocol": data.draw(st.sampled_from(["SSL", "SASL_SSL", "sasl_plaintext", "PLAINTEXT"]))
    }
    likely = {
        "SASL": ("sasl.mechanism", "sasl.jaas.config", "sasl.oauthbearer.token.endpoint.url"),
        "SSL": ("ssl.truststore.type", "ssl.truststore.certificates", "ssl.keystore.type", *sorted(pem)),
    }
    pool = [k for part, names in likely.items() if part in chosen["security.protocol"].upper() for k in names]
    keys = data.draw(st.lists(st.sampled_from(pool or _SECURE), max_size=5, unique=True))
    keys += data.draw(
        st.lists(st.sampled_from([k for k in _SECURE if k not in _FILES]), max_size=2, unique=True)
    )
    for key in dict.fromkeys(keys):
        chosen.setdefault(key, data.draw(st.sampled_from(pem.get(key) or _values(SETTINGS[key])), label=key))
    _judge(java, chosen, "at-least-once")


@pytest.mark.slow  # test_what_is_accepted_the_clients_accept draws from the same settings
def test_every_setting_by_itself(java: JavaClients) -> None:
    """Each is accepted with some value, and by the clients with each that is accepted; or it is never accepted."""
    for key, setting in SETTINGS.items():
        if key in _FILES or key == "bootstrap.servers":
            continue
        with_tls = (
            {"security.protocol": "SSL"} if key.startswith("ssl.") and setting.kind.name == "Enum" else {}
        )
        accepted = [v for v in _values(setting) if _judge(java, {**with_tls, key: v}, "at-least-once")]
        if setting.treatment in (Treatment.REFUSED, Treatment.SET_BY_BRIDGE):
            assert all(setting.default is not None for _ in accepted), key
        else:
            assert accepted, key


@pytest.mark.parametrize(
    "login",
    [
        {"sasl.mechanism": "plain", "sasl.jaas.config": _JAAS[0]},
        {"sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": _JAAS[1]},
        {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": _JAAS[2],
            "sasl.oauthbearer.token.endpoint.url": "http://127.0.0.1:1/token",
            "sasl.login.callback.handler.class": _TEXTS["sasl.login.callback.handler.class"][2],
            "sasl.oauthbearer.sub.claim.name": "who",
        },
    ],
)
def test_logins_that_the_clients_have(
    java: JavaClients, pem: dict[str, list[str]], login: dict[str, str]
) -> None:
    tls = {name: values[0] for name, values in pem.items()}
    tls |= {"ssl.keystore.type": "PEM", "ssl.truststore.type": "pem"}
    assert _judge(java, {"security.protocol": "sasl_ssl", **tls, **login}, "exactly-once")
    assert _judge(java, {"security.protocol": "SASL_PLAINTEXT", **login}, "none")

"""

Java's stores are converted to librdkafka's settings.

Logins by password and certificate: reading (Java), admin requests and sending (librdkafka).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from bridge.definition import Sink
from bridge.errors import KafkaError, OptionError
from bridge.kafka import admin, admin_transactions, sink, source
from bridge.kafka.client_settings import Role, for_librdkafka, for_spark, read_committed
from bridge.offsets import Offsets
from bridge.secret import Secret
from tests.kafka.certificates import PASSWORD, Authority, keytool
from tests.kafka.places import SECRETS, WRONG, Place, jaas

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
_HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
_EXTENSIONS = 'extension_logicalCluster="lkc-1" extension_identityPoolId="pool-2"'
_BEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"


def _sasl(mechanism: str, jaas: str) -> dict[str, str]:
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": Secret(jaas),
    }


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({}, {"kafka.isolation.level": "read_committed"}),
        ({"isolation.level": "read_uncommitted"}, {"kafka.isolation.level": "read_uncommitted"}),
        ({"group.id": "g"}, {"groupIdPrefix": "g"}),
        ({"max.poll.records": "10"}, {"kafka.max.poll.records": "10"}),
        ({"fetch.max.wait.ms": "500"}, {"kafka.fetch.max.wait.ms": "500"}),
        ({"auto.offset.reset": "earliest", "session.timeout.ms": "1"}, {}),
        ({"acks": "all", "linger.ms": "5", "compression.zstd.level": "3"}, {}),
        ({"ssl.truststore.password": Secret("s3cret")}, {"kafka.ssl.truststore.password": "s3cret"}),
    ],
)
def test_spark_gets_the_settings_of_a_reader(given: dict[str, str], made: dict[str, str]) -> None:
    """Reading is read_committed and waits for nothing by default; what Spark refuses or sending needs is not handed
    over."""
    own = {"kafka.isolation.level": "read_committed", "kafka.fetch.max.wait.ms": "10"}
    expected = {**own, "kafka.bootstrap.servers": "b:1", **made}
    assert for_spark({"bootstrap.servers": "b:1", **given}) == expected


@pytest.mark.parametrize(
    ("given", "role", "made"),
    [
        ({"client.id": "me"}, "admin", {"client.id": "me"}),
        ({"acks": "all"}, "producer", {"acks": "all"}),
        ({"acks": "all"}, "admin", {}),
        ({"fetch.min.bytes": "1", "isolation.level": "read_committed"}, "producer", {}),
        ({"group.id": "g", "auto.offset.reset": "latest"}, "admin", {}),
        ({"metrics.num.samples": "2", "default.api.timeout.ms": "60000"}, "admin", {}),
        ({"max.request.size": "2097152"}, "producer", {"message.max.bytes": "2097152"}),
        ({"buffer.memory": "33554432"}, "producer", {"queue.buffering.max.kbytes": "32768"}),
        ({"send.buffer.bytes": "-1"}, "admin", {"socket.send.buffer.bytes": "0"}),
        (
            {"request.timeout.ms": "5000"},
            "producer",
            {"socket.timeout.ms": "5000", "request.timeout.ms": "5000"},
        ),
        ({"metadata.max.age.ms": "300000"}, "admin", {"topic.metadata.refresh.interval.ms": "300000"}),
        ({"delivery.timeout.ms": "2147483647"}, "producer", {"delivery.timeout.ms": "2147483647"}),
        (
            {"compression.type": "zstd", "compression.zstd.level": "12", "compression.gzip.level": "9"},
            "producer",
            {"compression.type": "zstd", "compression.level": "12"},
        ),
        (
            {"ssl.endpoint.identification.algorithm": ""},
            "admin",
            {"ssl.endpoint.identification.algorithm": "none"},
        ),
        (
            _sasl("PLAIN", f'{_PLAIN} username="u" password="p";'),
            "admin",
            {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "u",
                "sasl.password": "p",
            },
        ),
        (
            _sasl("SCRAM-SHA-512", f"{_SCRAM} username='u' password='p'"),
            "producer",
            {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.username": "u",
                "sasl.password": "p",
            },
        ),
        (
            {
                **_sasl("OAUTHBEARER", f'{_BEARER} clientId="c" clientSecret="s" scope="k" {_EXTENSIONS};'),
                "sasl.oauthbearer.token.endpoint.url": "https://login.example/token",
                "sasl.login.callback.handler.class": _HANDLER,
            },
            "admin",
            {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.client.id": "c",
                "sasl.oauthbearer.client.secret": "s",
                "sasl.oauthbearer.scope": "k",
                "sasl.oauthbearer.extensions": "logicalCluster=lkc-1,identityPoolId=pool-2",
                "sasl.oauthbearer.token.endpoint.url": "https://login.example/token",
            },
        ),
    ],
)
def test_librdkafka_gets_its_own_names(given: dict[str, str], role: Role, made: dict[str, str]) -> None:
    """Names and ranges are librdkafka's, keys of the other role are left out, and librdkafka agrees."""
    properties = {"bootstrap.servers": "127.0.0.1:1", **given}
    settings = for_librdkafka(properties, role)
    assert settings == {"bootstrap.servers": "127.0.0.1:1", **made}
    assert all(type(v) is str for v in settings.values())
    client = Producer if role == "producer" else AdminClient
    client({**settings, "log_level": 0})


@pytest.mark.parametrize(
    ("given", "made"),
    [
        (
            {"ssl.truststore.location": "ca.pem", "ssl.truststore.type": "PEM"},
            {"ssl.ca.location": "ca.pem"},
        ),
        ({"ssl.truststore.certificates": "-----BEGIN"}, {"ssl.ca.pem": "-----BEGIN"}),
        (
            {"ssl.keystore.location": "me.pem", "ssl.keystore.type": "PEM", "ssl.key.password": "x"},
            {
                "ssl.certificate.location": "me.pem",
                "ssl.key.location": "me.pem",
                "ssl.key.password": "x",
            },
        ),
        (
            {"ssl.keystore.key": "key", "ssl.keystore.certificate.chain": "chain"},
            {"ssl.key.pem": "key", "ssl.certificate.pem": "chain"},
        ),
    ],
)
def test_stores_become_files_librdkafka_reads(given: dict[str, str], made: dict[str, str]) -> None:
    assert for_librdkafka({"bootstrap.servers": "b:1", **given}) == {"bootstrap.servers": "b:1", **made}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"ssl.truststore.location": "ca.jks"}, "the file cannot be read: No such file"),
        ({"ssl.keystore.location": __file__}, "the file is no key store: neither PEM nor PKCS#12 nor JKS"),
        (
            {
                "ssl.truststore.location": "a",
                "ssl.truststore.type": "PEM",
                "ssl.truststore.password": "x",
                "security.protocol": "SSL",
            },
            "a PEM file has no password",
        ),
        ({"ssl.enabled.protocols": "TLSv1.3"}, "cannot disable TLS 1.2"),
        ({"no.such.key": "1"}, "'properties.no.such.key' is not a setting"),
        ({"linger.ms": "soon"}, "'properties.linger.ms': 'soon' is not legal; librdkafka, which sends"),
        ({"partitioner.class": "x"}, "murmur2"),
        ({"value.deserializer": "x"}, "'value.format'"),
        ({"interceptor.classes": "x"}, "refuses interceptors"),
        ({"transactional.id": "x"}, "sink.transactional-id-prefix"),
        ({"enable.auto.commit": "true"}, "in the same commit as the data"),
        ({"security.protocol": "SASL_SSL"}, "'GSSAPI' is refused"),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"},
            "'properties.sasl.jaas.config' is missing",
        ),
        (
            _sasl("PLAIN", f'{_SCRAM} username="u" password="hunter2";'),
            "requires org.apache.kafka.common.security.plain.PlainLoginModule",
        ),
        (_sasl("PLAIN", f'{_PLAIN} username="u";'), "no 'password'"),
        (_sasl("PLAIN", f'{_PLAIN} username="u" password="hunter2'), "cannot be parsed after username"),
        (_sasl("PLAIN", "hunter2"), "must have the form: <login module> required"),
        (
            {
                **_sasl("PLAIN", f'{_PLAIN} username="u" password="p";'),
                "sasl.login.callback.handler.class": _HANDLER,
            },
            "librdkafka cannot load a Java class to log in",
        ),
    ],
)
def test_unsupported_settings_are_refused(given: dict[str, str], message: str) -> None:
    """Each refusal names the property and a reason, and no refusal repeats a secret."""
    with pytest.raises(OptionError, match=re.escape(message)) as refused:
        for_librdkafka({"bootstrap.servers": "b:1", **given}, "producer")
    assert "'properties." in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_isolation_level_is_one_of_two() -> None:
    assert read_committed({})
    assert not read_committed({"isolation.level": "read_uncommitted"})
    with pytest.raises(OptionError, match="one of read_committed, read_uncommitted"):
        read_committed({"isolation.level": "serializable"})


def test_flinks_shaded_login_module_is_renamed() -> None:
    shaded = f'org.apache.flink.kafka.shaded.{_PLAIN} username="u" password="p";'
    made = for_spark({"bootstrap.servers": "b:1", **_sasl("PLAIN", shaded)})
    assert made["kafka.sasl.jaas.config"] == f'{_PLAIN} username="u" password="p";'
    assert for_librdkafka({"bootstrap.servers": "b:1", **_sasl("PLAIN", shaded)})["sasl.password"] == "p"


def test_oauthbearer_asks_its_endpoint_on_both_sides() -> None:
    """Without a class that fetches a token, Java's client would create an unsigned one."""
    given = {
        "bootstrap.servers": "b:1",
        **_sasl("OAUTHBEARER", f'{_BEARER} clientId="c" clientSecret="s";'),
        "sasl.oauthbearer.token.endpoint.url": "https://login.example/token",
    }
    handler = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
    made = for_spark(given)
    assert made["kafka.sasl.login.callback.handler.class"] == handler
    assert made["kafka.sasl.jaas.config"] == f'{_BEARER} clientId="c" clientSecret="s";'
    named = for_spark(
        given | {"sasl.login.callback.handler.class": f"org.apache.flink.kafka.shaded.{handler}"}
    )
    assert named["kafka.sasl.login.callback.handler.class"] == handler
    assert for_librdkafka(given)["sasl.oauthbearer.method"] == "oidc"


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """The stores of one client, by their types."""
    authority = Authority(tmp_path_factory.mktemp("stores"), "ca")
    client = authority.issue("client")
    p12, jks = client.with_suffix(".p12"), client.with_suffix(".jks")
    keytool(
        "-importkeystore",
        "-noprompt",
        "-srckeystore",
        p12,
        "-srcstorepass",
        PASSWORD,
        "-destkeystore",
        jks,
        type="JKS",
    )
    named = {"PKCS12": p12, "JKS": jks, "PEM": client, "JKS trust": authority.truststore("JKS")}
    return {name: str(path) for name, path in named.items()}


def test_the_content_decides_the_type(stores: Mapping[str, str], tmp_path: Path) -> None:
    """librdkafka gets PKCS#12 as it is, JKS as its key and certificates; file names do not matter."""
    disguised = tmp_path / "me.jks"
    disguised.write_bytes(Path(stores["PKCS12"]).read_bytes())
    given = {"bootstrap.servers": "b:1", "ssl.keystore.password": Secret(PASSWORD)}
    assert for_librdkafka({**given, "ssl.keystore.location": str(disguised)}) == {
        "bootstrap.servers": "b:1",
        "ssl.keystore.location": str(disguised),
        "ssl.keystore.password": PASSWORD,
    }
    made = for_librdkafka(
        {**given, "ssl.keystore.location": stores["JKS"], "ssl.key.password": Secret(PASSWORD)}
    )
    assert set(made) == {"bootstrap.servers", "ssl.key.pem", "ssl.certificate.pem"}
    AdminClient({**made, "log_level": 0})
    pem = Path(stores["PEM"]).read_text()
    assert "".join(made["ssl.key.pem"].split()) in "".join(pem.split())
    assert made["ssl.certificate.pem"].count("BEGIN CERTIFICATE") == 2


@pytest.mark.parametrize(
    ("option", "name", "given", "message"),
    [
        (
            "keystore",
            "JKS",
            {"ssl.keystore.password": "hunter2"},
            "the password is wrong or the file is broken",
        ),
        (
            "keystore",
            "JKS",
            {"ssl.keystore.password": PASSWORD, "ssl.key.password": "hunter2"},
            "the password of its key is wrong",
        ),
        ("keystore", "JKS trust", {"ssl.keystore.password": PASSWORD}, "has no private key"),
        ("keystore", "PEM", {}, "'properties.ssl.keystore.type' = 'PEM'"),
        (
            "truststore",
            "PKCS12",
            {"ssl.truststore.password": "hunter2"},
            "the password is wrong or the file is",
        ),
        ("truststore", "JKS", {"ssl.truststore.password": PASSWORD}, "has no trusted certificate"),
    ],
)
def test_a_store_that_does_not_open_is_refused(
    stores: Mapping[str, str], option: str, name: str, given: Mapping[str, str], message: str
) -> None:
    with pytest.raises(OptionError, match=re.escape(message)) as refused:
        for_librdkafka({"bootstrap.servers": "b:1", f"ssl.{option}.location": stores[name], **given})
    assert "hunter2" not in str(refused.value)


_TRUST, _KEY = "ssl.truststore", "ssl.keystore"


def _security_sasl(mechanism: str, password: str | None = None) -> dict[str, str]:
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": Secret(jaas("alice", password, mechanism))}


@pytest.mark.parametrize(
    ("protocol", "mechanism", "trust", "key"),
    [
        ("SASL_PLAINTEXT", "SCRAM-SHA-256", None, None),
        ("SASL_SSL", "PLAIN", "trust JKS", None),
        ("SSL", None, "trust JKS", "key JKS"),
        pytest.param("SSL", None, "trust PEM", "key PEM", marks=pytest.mark.slow),
        pytest.param("SSL", None, "trust PKCS12", "key PKCS12", marks=pytest.mark.slow),
    ],
)
def test_both_clients_get_in(
    spark: SparkSession,
    place: Place,
    unique: Callable[[str], str],
    protocol: str,
    mechanism: str | None,
    trust: str | None,
    key: str | None,
) -> None:
    """Sink, admin, source and Java's admin client all work with a Java client's properties."""
    name = unique("secured")
    place.broker.create_topic(name)
    properties = _security_sasl(mechanism) if mechanism else {}
    properties |= place.store(_TRUST, trust) if trust else {}
    properties |= place.store(_KEY, key) if key else {}
    topic = place.topic(name, protocol, properties)
    rows = spark.createDataFrame([(bytearray(b"k"), bytearray(b"v"))], "key binary, value binary")
    assert sink.produce(rows, topic).records == 1
    end = admin.describe(topic).end
    assert end == Offsets({(name, 0): 1})
    [read] = source.read(spark, topic, Offsets(), end).select("key", "value").collect()
    assert (bytes(read.key), bytes(read.value)) == (b"k", b"v")
    assert (
        admin_transactions.list_transactions(spark, replace(topic, sink=Sink(transactional_id_prefix=name)))
        == []
    )


@pytest.mark.parametrize(
    ("protocol", "reason"),
    [
        ("SASL_PLAINTEXT", "refuses the login .*[Aa]uthentication failed"),
        ("SASL_SSL", "refuses the login .*certificate"),
    ],
)
def test_a_refused_login_is_an_error_with_the_reason_and_soon(
    spark: SparkSession, place: Place, unique: Callable[[str], str], protocol: str, reason: str
) -> None:
    """A wrong password; a broker's certificate that the client does not trust. No message has a secret."""
    properties = _security_sasl("SCRAM-SHA-256", WRONG if protocol == "SASL_PLAINTEXT" else None)
    if protocol == "SASL_SSL":
        properties |= place.store(_TRUST, "other PEM")
    name = unique("refused")
    place.broker.create_topic(name)
    topic = place.topic(name, protocol, properties)
    rows = spark.createDataFrame([(bytearray(b"k"), bytearray(b"v"))], "key binary, value binary")
    prefixed = replace(topic, sink=Sink(transactional_id_prefix=name))
    for attempt in (
        lambda: admin.describe(topic),
        lambda: sink.produce(rows, topic),
        lambda: admin_transactions.list_transactions(spark, prefixed),
    ):
        began = time.monotonic()
        with pytest.raises(KafkaError) as refused:
            attempt()
        assert time.monotonic() - began < 30
        message = str(refused.value)
        assert not [secret for secret in SECRETS if secret in message]
        assert "login" in message or "uthentication" in message or "certificate" in message, message
    with pytest.raises(KafkaError, match=reason):
        admin.describe(topic)

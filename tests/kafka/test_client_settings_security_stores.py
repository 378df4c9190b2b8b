"""Java's stores are converted to librdkafka's settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from bridge.errors import OptionError
from bridge.kafka.client_settings import for_librdkafka
from bridge.secret import Secret
from tests.kafka.certificates import PASSWORD, Authority, keytool


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

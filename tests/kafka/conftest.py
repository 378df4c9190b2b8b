"""A broker with an authorizer and listeners that require a password or a certificate, shared by all tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bridge.embedded.broker import Broker, Listeners
from tests.kafka.certificates import PASSWORD, Authority, keytool
from tests.kafka.places import LOGINS, Place


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("security")
    ours, other = Authority(folder, "ours"), Authority(folder, "other")
    client = ours.issue("client")
    jks = client.with_suffix(".jks")
    source_store = ("-srckeystore", client.with_suffix(".p12"), "-srcstorepass", PASSWORD)
    keytool("-importkeystore", "-noprompt", *source_store, "-destkeystore", jks, type="JKS")
    stores = {
        "trust PEM": ours.pem,
        "trust JKS": ours.truststore("JKS"),
        "trust PKCS12": ours.truststore("PKCS12"),
        "other PEM": other.pem,
        "key PEM": client,
        "key PKCS12": client.with_suffix(".p12"),
        "key JKS": jks,
        "expired PEM": ours.issue("expired", expired=True),
    }
    listeners = Listeners(
        LOGINS, certificate=ours.issue("broker"), authority=ours.pem, super_users=("alice", "CN=client")
    )
    with Broker(folder / "broker", listeners=listeners) as broker:
        yield Place(broker, listeners, stores)

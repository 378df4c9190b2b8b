"""A key store is read the same from JKS and from PKCS#12."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509 import load_pem_x509_certificate

from bridge.key_stores import KeyStoreError, WrongPasswordError, read_key_store, store_type
from tests.kafka.certificates import PASSWORD, Authority, keytool


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A client's key with its chain, and an authority's certificate, as PKCS#12 and as JKS."""
    authority = Authority(tmp_path_factory.mktemp("stores"), "ca")
    client = authority.issue("client")
    p12, jks = client.with_suffix(".p12"), client.with_suffix(".jks")
    source = ("-srckeystore", p12, "-srcstorepass", PASSWORD)
    keytool("-importkeystore", "-noprompt", *source, "-destkeystore", jks, type="JKS")
    trust = {f"{type} trust": str(authority.truststore(type)) for type in ("PKCS12", "JKS")}
    return {"PEM": str(client), "PKCS12": str(p12), "JKS": str(jks), **trust}


def test_the_content_of_a_file_decides_its_type(stores: dict[str, str], tmp_path: Path) -> None:
    for name, path in stores.items():
        renamed = tmp_path / "store.txt"
        renamed.write_bytes(Path(path).read_bytes())
        assert store_type(str(renamed)) == name.partition(" ")[0]
    with pytest.raises(KeyStoreError, match="is no key store: neither PEM nor PKCS#12 nor JKS"):
        store_type(__file__)
    with pytest.raises(KeyStoreError, match="cannot be read: No such file"):
        store_type(str(tmp_path / "absent"))


@pytest.mark.parametrize("type", ["PKCS12", "JKS"])
def test_key_and_certificates(stores: dict[str, str], type: str) -> None:
    store = read_key_store(stores[type], PASSWORD)
    assert store.key is not None and PASSWORD not in repr(store) and store.key not in repr(store)
    key = load_pem_private_key(store.key.encode(), None)
    own, issuer = (load_pem_x509_certificate(text.encode()) for text in store.chain)
    assert own.public_key() == key.public_key()
    assert own.issuer == issuer.subject
    trust = read_key_store(stores[f"{type} trust"], PASSWORD)
    assert (trust.key, trust.chain, trust.trusted) == (None, (), (store.chain[1],))


@pytest.mark.parametrize("type", ["PKCS12", "JKS"])
def test_wrong_passwords(stores: dict[str, str], type: str) -> None:
    with pytest.raises(WrongPasswordError, match="password is wrong or the file is broken") as raised:
        read_key_store(stores[type], "hunter2")
    assert not raised.value.of_key
    assert "hunter2" not in str(raised.value)


def test_a_jks_file_needs_no_password_for_its_certificates_but_for_its_key(stores: dict[str, str]) -> None:
    assert len(read_key_store(stores["JKS trust"], None).trusted) == 1
    assert read_key_store(stores["JKS"], None, PASSWORD).key is not None
    with pytest.raises(WrongPasswordError, match="the password of its key is wrong") as raised:
        read_key_store(stores["JKS"], PASSWORD, "hunter2")
    assert raised.value.of_key


def test_a_broken_jks_file(stores: dict[str, str], tmp_path: Path) -> None:
    broken = tmp_path / "broken.jks"
    broken.write_bytes(Path(stores["JKS"]).read_bytes()[:100])
    with pytest.raises(KeyStoreError, match="is a broken JKS file"):
        read_key_store(str(broken), None, PASSWORD)

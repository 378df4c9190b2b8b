"""Pipelines of one process share the clients of registries and the PEM files that key stores become.

Java's stores are converted to PEM files for the registry's client, which connects with TLS.
"""

from __future__ import annotations

import shutil
import ssl
import stat
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import NoEncryption
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bridge import jars
from bridge.config.registry_settings import registry_settings
from bridge.embedded.schema_registry import SchemaRegistryServer
from bridge.errors import KafkaError, OptionError
from bridge.formats import catalog as formats
from bridge.formats.avro.registry_client import RegistryClient, pem_settings
from bridge.secret import Secret
from tests.formats.gate import Gate
from tests.formats.support import row_type, scalar

THREADS = 8


def record(number: int) -> Schema:
    return Schema(f'{{"type": "record", "name": "r{number}", "fields": []}}', "AVRO")


def test_a_subject_gets_an_id_while_another_thread_asks_for_its_schemas(
    registry: SchemaRegistryServer, unique: Callable[[str], str]
) -> None:
    """Without a copy of its ids the thread that waits for the registry fails: the dictionary has changed."""
    subject = unique("subject")
    direct = SchemaRegistryClient({"url": registry.url})
    known = [direct.register_schema(subject, record(number)) for number in range(3)]
    late = direct.register_schema(unique("elsewhere"), record(3))
    with Gate(registry.url) as gate, ThreadPoolExecutor(1) as pool:
        client = RegistryClient(registry_settings({"url": gate.url}, ""))
        client.schemas_by_id([late], None)
        gate.passed, gate.delay = 0, 0.3
        waiting = pool.submit(client.schemas_of_subject, subject)
        while gate.passed < 2 + len(known):  # the list, each version, and the first schema
            assert not waiting.done()
            time.sleep(0.005)
        assert list(client.schemas_by_id([late], subject)) == [late]
        assert not waiting.done()
        assert list(waiting.result(30)) == known
        assert list(client.schemas_of_subject(subject)) == [*known, late]


def key_store(file: Path) -> x509.Certificate:
    """A PKCS#12 store with a new key; returns its certificate."""
    name, now = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, file.name)]), datetime(2026, 1, 1)
    key = ec.generate_private_key(ec.SECP256R1())
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now)
    certificate = made.not_valid_after(now + timedelta(days=1)).sign(key, SHA256())
    file.write_bytes(serialize_key_and_certificates(b"me", key, certificate, None, NoEncryption()))
    return certificate


@pytest.mark.parametrize("seconds", [2, pytest.param(60, marks=pytest.mark.slow)])
def test_stores_that_are_converted_at_the_same_time_have_files_of_their_own(
    tmp_path: Path, seconds: float
) -> None:
    together, until, rounds = threading.Barrier(THREADS, timeout=30), time.monotonic() + seconds, 0

    def converted(file: Path) -> Path:
        together.wait()
        settings = registry_settings({"url": "https://h:1", "ssl.keystore.location": str(file)}, "")
        return Path(pem_settings(settings)["ssl.key.location"])

    with ThreadPoolExecutor(THREADS) as pool:
        while time.monotonic() < until:
            stores = [tmp_path / f"{rounds}-{number}.p12" for number in range(THREADS)]
            certificates = [key_store(file) for file in stores]
            files = list(pool.map(converted, stores))
            assert len(set(files)) == THREADS
            for file, certificate in zip(files, certificates, strict=True):
                assert x509.load_pem_x509_certificates(file.read_bytes()) == [certificate]
            rounds += 1


_PASSWORD = "changeit"


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """key.p12 and key.jks with one self-signed key for 127.0.0.1, trust.jks and trust.p12 with its certificate."""
    folder = tmp_path_factory.mktemp("stores")
    keytool = str(Path(shutil.which(jars.java()) or jars.java()).resolve().with_name("keytool"))

    def run(*arguments: str) -> None:
        words = [keytool, *arguments, "-storepass", _PASSWORD]
        subprocess.run(words, cwd=folder, check=True, capture_output=True, stdin=subprocess.DEVNULL)

    for kind in ("PKCS12", "JKS"):
        short = {"PKCS12": "p12", "JKS": "jks"}[kind]
        run(
            *"-genkeypair -alias me -keyalg EC -dname CN=127.0.0.1 -ext SAN=ip:127.0.0.1 -keystore".split(),
            *(f"key.{short}", "-storetype", kind, "-keypass", _PASSWORD),
        )
        run("-exportcert", "-rfc", "-alias", "me", "-keystore", f"key.{short}", "-file", f"{short}.pem")
        run(
            *("-importcert", "-noprompt", "-alias", "ca", "-file", "p12.pem"),
            *("-keystore", f"trust.{short}", "-storetype", kind),
        )
    return folder


@pytest.mark.parametrize("kind", ["p12", "jks"])
def test_stores_become_files_that_only_this_user_can_read(stores: Path, kind: str) -> None:
    options = {
        "url": "https://127.0.0.1:1",
        "ssl.keystore.location": str(stores / f"key.{kind}"),
        "ssl.keystore.password": Secret(_PASSWORD),
        "ssl.truststore.location": str(stores / f"trust.{kind}"),
        "ssl.truststore.password": Secret(_PASSWORD),
    }
    made = pem_settings(registry_settings(options, ""))
    for path in map(Path, made.values()):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    context = ssl.create_default_context(cafile=made["ssl.ca.location"])
    context.load_cert_chain(made["ssl.certificate.location"], made["ssl.key.location"])
    assert context.cert_store_stats()["x509"] == 1
    for wrong in ("ssl.keystore", "ssl.truststore"):
        refused = {**options, f"{wrong}.password": Secret("hidden")}
        with pytest.raises(OptionError, match=f"'{wrong}.password' does not open the store"):
            pem_settings(registry_settings(refused, ""))


def test_pem_files_are_used_as_they_are_and_others_are_refused(stores: Path, tmp_path: Path) -> None:
    def truststore(path: Path) -> dict[str, str]:
        return pem_settings(
            registry_settings({"url": "https://h:1", "ssl.truststore.location": str(path)}, "")
        )

    assert truststore(stores / "p12.pem") == {"ssl.ca.location": str(stores / "p12.pem")}
    other = tmp_path / "other"
    other.write_bytes(b"secret")
    with pytest.raises(OptionError, match=r"'ssl.truststore.location' is no key store: neither PEM"):
        truststore(other)
    with pytest.raises(OptionError, match=r"'ssl.truststore.location' cannot be read: No such file"):
        truststore(tmp_path / "absent")


def test_a_registry_behind_tls(spark: SparkSession, registry: SchemaRegistryServer, stores: Path) -> None:
    """Trusted by the store; not without; and the client's own key where the server asks for one."""
    made = pem_settings(
        registry_settings(
            {
                "url": "https://h:1",
                "ssl.keystore.location": str(stores / "key.p12"),
                "ssl.keystore.password": _PASSWORD,
            },
            "",
        )
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(stores / "p12.pem"))
    context.load_cert_chain(made["ssl.certificate.location"], made["ssl.key.location"])
    context.verify_mode = ssl.CERT_REQUIRED
    row, format = row_type(a=scalar("INT")), formats.get("avro-confluent")
    with Gate(registry.url, context) as gate:
        options = {
            "url": gate.url,
            "subject": "tls",
            "properties.max.retries": "0",
            "ssl.truststore.location": str(stores / "trust.jks"),
            "ssl.truststore.password": _PASSWORD,
        }
        key = {"ssl.keystore.location": str(stores / "key.p12"), "ssl.keystore.password": Secret(_PASSWORD)}
        format.decoder(row, {**options, **key}).decode(F.col("x"))
        assert gate.passed == 1
        without = {k: v for k, v in options.items() if not k.startswith("ssl")}
        for untrusted in (options, {**without, **key}):
            with pytest.raises(KafkaError, match=r"cannot be reached \(\w+\)"):
                format.decoder(row, untrusted).decode(F.col("x"))
        assert gate.passed == 1

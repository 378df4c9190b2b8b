"""Pipelines of one process share the clients of registries and the PEM files that key stores become."""

from __future__ import annotations

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

from bridge.config.registry_settings import registry_settings
from bridge.embedded.schema_registry import SchemaRegistryServer
from bridge.formats.avro.registry_client import RegistryClient, pem_settings
from tests.formats.gate import Gate

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

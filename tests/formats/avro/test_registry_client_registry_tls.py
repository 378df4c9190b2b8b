"""Java's stores are converted to PEM files for the registry's client, which connects with TLS."""

from __future__ import annotations

import shutil
import ssl
import stat
import subprocess
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bridge import jars
from bridge.config.registry_settings import registry_settings
from bridge.embedded.schema_registry import SchemaRegistryServer
from bridge.errors import KafkaError, OptionError
from bridge.formats import catalog as formats
from bridge.formats.avro.registry_client import pem_settings
from bridge.secret import Secret
from tests.formats.gate import Gate
from tests.formats.support import row_type, scalar

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

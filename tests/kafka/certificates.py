"""A certificate authority for a test, with the stores that Java users have."""

from __future__ import annotations

import subprocess
from datetime import datetime, timedelta, timezone
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates

PASSWORD = "store-hunter2"


class Authority:
    """Issues certificates for 127.0.0.1; `pem` is its own."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._certificate = self._sign(self._name, self._key, ca=True)
        self.pem = folder / f"{name}.pem"
        self.pem.write_bytes(self._certificate.public_bytes(Encoding.PEM))

    def issue(self, name: str, *, expired: bool = False) -> Path:
        """A PEM file with a key, its certificate and the authority's; beside it the same as PKCS#12."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        certificate = self._sign(subject, key, ca=False, days=-0.5 if expired else 1)
        file = self.folder / f"{name}.pem"
        file.write_bytes(
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            + certificate.public_bytes(Encoding.PEM)
            + self._certificate.public_bytes(Encoding.PEM)
        )
        file.with_suffix(".p12").write_bytes(
            serialize_key_and_certificates(
                name.encode(),
                key,
                certificate,
                [self._certificate],
                BestAvailableEncryption(PASSWORD.encode()),
            )
        )
        return file

    def truststore(self, type: str) -> Path:
        """A store with the authority's certificate, made by keytool."""
        file = self.folder / f"{self.pem.stem}-trust.{type.lower()}"
        keytool("-importcert", "-noprompt", "-alias", "ca", "-file", self.pem, "-keystore", file, type=type)
        return file

    def _sign(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, ca: bool, days: float = 1
    ) -> x509.Certificate:
        now = datetime.now(timezone.utc)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=days))
            .add_extension(x509.BasicConstraints(ca, None), critical=True)
            .add_extension(
                x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
            )
            .sign(self._key, hashes.SHA256())
        )


def keytool(*arguments: str | Path, type: str) -> None:
    """Run Java's keytool on a store of `type`, whose password is PASSWORD."""
    password = ["-storepass", PASSWORD] if "-importcert" in arguments else ["-deststorepass", PASSWORD]
    kind = "-storetype" if "-importcert" in arguments else "-deststoretype"
    command = ["keytool", *map(str, arguments), kind, type, *password]
    subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)

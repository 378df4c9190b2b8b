"""Checks certificates and keys that the settings contain as PEM text, as both clients would parse them."""

from __future__ import annotations

from collections.abc import Mapping

from bridge.errors import OptionError
from bridge.options.properties.model import PREFIX

__all__ = ["check_pem"]

_CHAIN, _KEY, _PASSWORD = "ssl.keystore.certificate.chain", "ssl.keystore.key", "ssl.key.password"


def check_pem(settings: Mapping[str, str]) -> None:
    """Raises OptionError for PEM text that a client could not parse; the message shows no part of it."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
    from cryptography.x509 import load_pem_x509_certificates

    chain = None
    for name in ("ssl.truststore.certificates", _CHAIN):
        if name in settings:
            try:
                chain = load_pem_x509_certificates(settings[name].encode())
            except ValueError:
                raise OptionError(
                    f"'{PREFIX}{name}' contains no certificate; it must have the form -----BEGIN CERTIFICATE----- ..."
                ) from None
    if _KEY not in settings:
        return
    encrypted = "BEGIN ENCRYPTED PRIVATE KEY" in settings[_KEY]
    if encrypted != (_PASSWORD in settings):
        raise OptionError(
            f"'{PREFIX}{_KEY}' is {'' if encrypted else 'not '}encrypted; {'set' if encrypted else 'remove'} "
            f"'{PREFIX}{_PASSWORD}'"
        )
    try:
        if not encrypted and "-----BEGIN PRIVATE KEY-----" not in settings[_KEY]:
            raise ValueError("not PKCS#8")
        key = load_pem_private_key(
            settings[_KEY].encode(), settings[_PASSWORD].encode() if encrypted else None
        )
    except (ValueError, TypeError):
        raise OptionError(
            f"'{PREFIX}{_KEY}' contains no readable key; Kafka's Java client reads PKCS#8, -----BEGIN PRIVATE KEY----- "
            f"or -----BEGIN ENCRYPTED PRIVATE KEY----- with the right '{PREFIX}{_PASSWORD}'"
        ) from None
    form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if chain and key.public_key().public_bytes(*form) != chain[0].public_key().public_bytes(*form):
        raise OptionError(
            f"'{PREFIX}{_CHAIN}' does not start with the certificate of '{PREFIX}{_KEY}'; put that certificate first"
        )

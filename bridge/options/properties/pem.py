"""Certificates and keys that stand in the definition itself, as PEM: read as both clients will read them."""

from __future__ import annotations

from collections.abc import Mapping

from bridge.errors import OptionError
from bridge.options.properties.model import PREFIX

__all__ = ["check_pem"]

_CHAIN, _KEY, _PASSWORD = "ssl.keystore.certificate.chain", "ssl.keystore.key", "ssl.key.password"


def check_pem(settings: Mapping[str, str]) -> None:
    """Raise OptionError, which shows nothing of it, for PEM text that a client could not read."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
    from cryptography.x509 import load_pem_x509_certificates

    chain = None
    for name in ("ssl.truststore.certificates", _CHAIN):
        if name in settings:
            try:
                chain = load_pem_x509_certificates(settings[name].encode())
            except ValueError:
                raise OptionError(
                    f"'{PREFIX}{name}' holds no certificate; it must read -----BEGIN CERTIFICATE----- ..."
                ) from None
    if _KEY not in settings:
        return
    encrypted = "BEGIN ENCRYPTED PRIVATE KEY" in settings[_KEY]
    if encrypted != (_PASSWORD in settings):
        raise OptionError(
            f"'{PREFIX}{_KEY}' is {'' if encrypted else 'not '}encrypted; {'set' if encrypted else 'leave out'} "
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
            f"'{PREFIX}{_KEY}' holds no key that can be read; Java reads PKCS#8, -----BEGIN PRIVATE KEY----- or "
            f"-----BEGIN ENCRYPTED PRIVATE KEY----- with the right '{PREFIX}{_PASSWORD}'"
        ) from None
    form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if chain and key.public_key().public_bytes(*form) != chain[0].public_key().public_bytes(*form):
        raise OptionError(f"'{PREFIX}{_CHAIN}' does not begin with the certificate of '{PREFIX}{_KEY}'")

"""Java's key and trust stores, for librdkafka, which reads certificates and keys as PEM.

The content of a file decides what it is, as it does for Java: keytool writes PKCS#12 into files called .jks.
"""

from __future__ import annotations

import hashlib
import struct
from base64 import encodebytes
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

__all__ = ["Store", "StoreError", "kind", "read"]

_JKS = b"\xfe\xed\xfe\xed"
_WHITENER = b"Mighty Aphrodite"
_DIGEST = 20  # bytes of a SHA-1


class StoreError(ValueError):
    """Raised for a store that cannot be read; says what of it, and nothing of its content or password."""


@dataclass(frozen=True)
class Store:
    """What a store holds, as PEM: trusted certificates; a private key, not encrypted, and its certificates."""

    trusted: str
    key: str | None = field(default=None, repr=False)
    chain: str | None = None


def kind(path: str) -> str:
    """PEM, PKCS12 or JKS. Raises StoreError for a file that is none of them or cannot be read."""
    head = _content(path).lstrip()[:11]
    if head.startswith(_JKS):
        return "JKS"
    if head.startswith(b"-----BEGIN "):
        return "PEM"
    if head.startswith(b"\x30"):  # a sequence in DER
        return "PKCS12"
    raise StoreError("is no key store: neither PEM nor PKCS#12 nor JKS")


def read(path: str, password: str, key_password: str | None = None) -> Store:
    """The content of a PKCS#12 or JKS file. Raises StoreError, for a wrong password as well."""
    content = _content(path)
    if content.startswith(_JKS):
        try:
            return _jks(content, password, key_password or password)
        except (struct.error, IndexError, UnicodeDecodeError):
            raise StoreError("is a broken JKS file") from None
    try:
        found = load_pkcs12(content, password.encode())
    except ValueError:
        raise StoreError("cannot be opened: the password is wrong or the file is broken") from None
    others = [c.certificate.public_bytes(Encoding.DER) for c in found.additional_certs]
    return Store("".join(_pem("CERTIFICATE", c) for c in others))


def _content(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as failed:
        raise StoreError(f"cannot be read: {failed.strerror}") from None


def _pem(label: str, der: bytes) -> str:
    return f"-----BEGIN {label}-----\n{encodebytes(der).decode()}-----END {label}-----\n"


class _Reader:
    """Java's DataInputStream."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def take(self, size: int) -> bytes:
        found = self.content[self.at : self.at + size]
        if len(found) < size:
            raise IndexError("the file ends early")
        self.at += size
        return found

    def number(self, format: str = ">I") -> int:
        return int(struct.unpack(format, self.take(struct.calcsize(format)))[0])

    def block(self) -> bytes:
        return self.take(self.number())

    def text(self) -> str:
        return self.take(self.number(">H")).decode()


def _jks(content: bytes, password: str, key_password: str) -> Store:
    """The layout of sun.security.provider.JavaKeyStore."""
    secret = password.encode("utf-16-be")
    body, digest = content[:-_DIGEST], content[-_DIGEST:]
    if password and hashlib.sha1(secret + _WHITENER + body).digest() != digest:
        raise StoreError("cannot be opened: the password is wrong or the file is broken")
    reader = _Reader(body)
    _, version, entries = (reader.number() for _ in range(3))
    trusted, key, chain = [], None, None

    def certificate() -> str:
        if version > 1:
            reader.text()
        return _pem("CERTIFICATE", reader.block())

    for _ in range(entries):
        tag = reader.number()
        reader.text()
        reader.take(8)
        if tag == 1:
            protected = reader.block()
            certificates = "".join([certificate() for _ in range(reader.number())])
            if key is None:
                key, chain = _pem("PRIVATE KEY", _recovered(protected, key_password)), certificates
        elif tag == 2:
            trusted.append(certificate())
        else:
            raise StoreError("is a broken JKS file")
    return Store("".join(trusted), key, chain)


def _recovered(protected: bytes, password: str) -> bytes:
    """The key in PKCS#8 from Java's own protection: a stream of chained digests, with a check at its end."""
    secret = password.encode("utf-16-be")
    sealed = _last_part(protected)
    link, body, check = sealed[:_DIGEST], sealed[_DIGEST:-_DIGEST], sealed[-_DIGEST:]
    stream = b""
    while len(stream) < len(body):
        link = hashlib.sha1(secret + link).digest()
        stream += link
    key = bytes(a ^ b for a, b in zip(body, stream, strict=False))
    if hashlib.sha1(secret + key).digest() != check:
        raise StoreError("cannot be opened: the password of its key is wrong ('properties.ssl.key.password')")
    return key


def _last_part(der: bytes) -> bytes:
    """The last member of a DER sequence: of EncryptedPrivateKeyInfo, what is encrypted."""
    at, end = _span(der, 0)
    last = (at, end)
    while at < end:
        last = _span(der, at)
        at = last[1]
    return der[last[0] : last[1]]


def _span(der: bytes, at: int) -> tuple[int, int]:
    """Where the content of the value at `at` begins and ends."""
    size, start = der[at + 1], at + 2
    if size & 0x80:
        start += size & 0x7F
        size = int.from_bytes(der[at + 2 : start], "big")
    return start, start + size

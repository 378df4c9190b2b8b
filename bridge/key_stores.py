"""Reads Java's key and trust stores as PEM, for librdkafka and for Python's TLS.

The content of a file decides its type, as it does for Java: keytool writes PKCS#12 into files called .jks. PKCS#12 is
read by `cryptography`. JKS is read here: the library for it on PyPI, pyjks, needs `twofish`, an extension in C whose
last release is a source archive of 2013.
"""

from __future__ import annotations

import hashlib
import struct
from base64 import encodebytes
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

_PEM, _JKS, _DER_SEQUENCE = b"-----BEGIN ", b"\xfe\xed\xfe\xed", b"\x30"
_WHITENER = b"Mighty Aphrodite"  # JKS hashes it between password and content
_DIGEST = 20  # bytes of a SHA-1


class KeyStoreError(ValueError):
    """Raised for a store that cannot be read. The message completes "the store ..." and shows no content."""


class WrongPasswordError(KeyStoreError):
    """Raised for a store or a key that the password does not open; `of_key` is true for a key in an open store."""

    def __init__(self, message: str, *, of_key: bool = False) -> None:
        super().__init__(message)
        self.of_key = of_key


@dataclass(frozen=True)
class KeyStore:
    """The content of a store as PEM texts."""

    trusted: tuple[str, ...]
    """Certificates without a private key."""
    key: str | None = field(default=None, repr=False)
    """The first private key, as PKCS#8, not encrypted."""
    chain: tuple[str, ...] = ()
    """The certificate of `key`, followed by those of its issuers."""


def store_type(path: str) -> Literal["PEM", "PKCS12", "JKS"]:
    """Return the type of the store in a file, by its content. Raises KeyStoreError for any other or unreadable file."""
    head = _read(path).lstrip()[: len(_PEM)]
    if head.startswith(_JKS):
        return "JKS"
    if head.startswith(_PEM):
        return "PEM"
    if head.startswith(_DER_SEQUENCE):
        return "PKCS12"
    raise KeyStoreError("is no key store: neither PEM nor PKCS#12 nor JKS")


def read_key_store(path: str, password: str | None, key_password: str | None = None) -> KeyStore:
    """Read a PKCS#12 or JKS file. `key_password` opens the key of a JKS file where it differs from `password`.

    Without a password the integrity of a JKS file is not verified, as in Java. Raises KeyStoreError, for a wrong
    password WrongPasswordError.
    """
    content = _read(path)
    if content.startswith(_JKS):
        try:
            return _read_jks(content, password or "", key_password or password or "")
        except (struct.error, IndexError, UnicodeDecodeError):
            raise KeyStoreError("is a broken JKS file") from None
    return _read_pkcs12(content, password)


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise KeyStoreError(f"cannot be read: {error.strerror}") from None


def _read_pkcs12(content: bytes, password: str | None) -> KeyStore:
    try:
        store = load_pkcs12(content, None if password is None else password.encode())
    except ValueError:
        raise _wrong_password() from None
    trusted = tuple(
        _pem("CERTIFICATE", c.certificate.public_bytes(Encoding.DER)) for c in store.additional_certs
    )
    own = () if store.cert is None else (store.cert.certificate,)
    chain = (*(_pem("CERTIFICATE", c.public_bytes(Encoding.DER)) for c in own), *trusted) if own else ()
    key: Any = store.key
    if key is None:
        return KeyStore(trusted, None, chain)
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return KeyStore(trusted, text, chain)


def _wrong_password() -> WrongPasswordError:
    return WrongPasswordError("cannot be opened: the password is wrong or the file is broken")


def _pem(label: str, der: bytes) -> str:
    return f"-----BEGIN {label}-----\n{encodebytes(der).decode()}-----END {label}-----\n"


class _DataInputStream:
    """Reads the encodings of java.io.DataInputStream. Raises IndexError where the content ends early."""

    def __init__(self, content: bytes) -> None:
        self._content, self._position = content, 0

    def read(self, size: int) -> bytes:
        part = self._content[self._position : self._position + size]
        if len(part) < size:
            raise IndexError("the file ends early")
        self._position += size
        return part

    def read_number(self, format: str = ">I") -> int:
        return int(struct.unpack(format, self.read(struct.calcsize(format)))[0])

    def read_block(self) -> bytes:
        return self.read(self.read_number())

    def read_text(self) -> str:
        return self.read(self.read_number(">H")).decode()


def _read_jks(content: bytes, password: str, key_password: str) -> KeyStore:
    """Read the layout of sun.security.provider.JavaKeyStore."""
    body, digest = content[:-_DIGEST], content[-_DIGEST:]
    if password and hashlib.sha1(password.encode("utf-16-be") + _WHITENER + body).digest() != digest:
        raise _wrong_password()
    stream = _DataInputStream(body)
    _, version, entries = (stream.read_number() for _ in range(3))
    trusted: list[str] = []
    key: str | None = None
    chain: tuple[str, ...] = ()

    def certificates(count: int) -> Iterator[str]:
        for _ in range(count):
            if version > 1:
                stream.read_text()  # the type, always X.509
            yield _pem("CERTIFICATE", stream.read_block())

    for _ in range(entries):
        tag = stream.read_number()
        stream.read_text()  # the alias
        stream.read(8)  # the date
        if tag == 1:
            protected = stream.read_block()
            entry_chain = tuple(certificates(stream.read_number()))
            if key is None:
                key, chain = _pem("PRIVATE KEY", _decrypt_key(protected, key_password)), entry_chain
        elif tag == 2:
            trusted += certificates(1)
        else:
            raise KeyStoreError("is a broken JKS file")
    return KeyStore(tuple(trusted), key, chain)


def _decrypt_key(protected: bytes, password: str) -> bytes:
    """Return the key as PKCS#8. Java encrypts it with a stream of chained digests and appends a check value."""
    secret = password.encode("utf-16-be")
    encrypted = _last_member(protected)
    salt, body, check = encrypted[:_DIGEST], encrypted[_DIGEST:-_DIGEST], encrypted[-_DIGEST:]
    digest, stream = salt, b""
    while len(stream) < len(body):
        digest = hashlib.sha1(secret + digest).digest()
        stream += digest
    key = bytes(a ^ b for a, b in zip(body, stream, strict=False))
    if hashlib.sha1(secret + key).digest() != check:
        raise WrongPasswordError("cannot be opened: the password of its key is wrong", of_key=True)
    return key


def _last_member(der: bytes) -> bytes:
    """Return the last member of a DER sequence: the encrypted data of an EncryptedPrivateKeyInfo."""
    position, end = _content_span(der, 0)
    last = (position, end)
    while position < end:
        last = _content_span(der, position)
        position = last[1]
    return der[last[0] : last[1]]


def _content_span(der: bytes, position: int) -> tuple[int, int]:
    """Return where the content of the DER value at `position` begins and ends."""
    size, start = der[position + 1], position + 2
    if size & 0x80:
        start += size & 0x7F
        size = int.from_bytes(der[position + 2 : start], "big")
    return start, start + size

"""Java's key and trust stores as PEM files, which is what Python's TLS reads."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from bridge import jars
from bridge.config.registry_settings import RegistrySettings
from bridge.errors import OptionError
from bridge.secret import Secret

__all__ = ["pem_settings"]

_PEM, _JKS, _DER = b"-----BEGIN", bytes.fromhex("feedfeed"), b"\x30"
_PASSWORD = "BRIDGE_STORE_PASSWORD"


def pem_settings(settings: RegistrySettings) -> dict[str, str]:
    """The client's settings for both stores; PEM files are used as they are, JKS and PKCS#12 are converted.

    Converted files are readable by this user only and gone when the process ends. Raises OptionError for a
    store that cannot be opened.
    """
    made: dict[str, str] = {}
    if settings.truststore:
        made["ssl.ca.location"] = str(_converted("ssl.truststore", *settings.truststore))
    if settings.keystore:
        found = str(_converted("ssl.keystore", *settings.keystore))
        made |= {"ssl.certificate.location": found, "ssl.key.location": found}
        password = settings.keystore[1]
        if password is not None and found == settings.keystore[0]:
            made["ssl.key.password"] = _plain(password)
    return made


@cache
def _converted(store: str, location: str, password: str | None) -> Path:
    path = Path(location)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise OptionError(f"'{store}.location' cannot be read: {error.strerror}") from None
    if data.lstrip().startswith(_PEM):
        return path
    if data.startswith(_JKS):
        data = _as_pkcs12(store, path, password)
    elif not data.startswith(_DER):
        raise OptionError(f"'{store}.location' is no PEM file, no JKS store and no PKCS#12 store")
    text = _pem(store, data, password)
    if not text:
        raise OptionError(f"'{store}.location' holds no certificate")
    made = _folder() / f"{store}-{len(list(_folder().iterdir()))}.pem"
    made.touch(mode=0o600)
    made.write_bytes(text)
    return made


def _pem(store: str, data: bytes, password: str | None) -> bytes:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.serialization import pkcs12

    try:
        opened = pkcs12.load_pkcs12(data, _plain(password).encode() if password is not None else None)
    except ValueError:
        raise OptionError(f"'{store}.password' does not open the store") from None
    parts = [entry.certificate for entry in (opened.cert, *opened.additional_certs) if entry is not None]
    text = b"".join(part.public_bytes(serialization.Encoding.PEM) for part in parts)
    key: Any = opened.key
    if key is not None:
        text += key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    return text


def _as_pkcs12(store: str, path: Path, password: str | None) -> bytes:
    """By Java's own tool, which lies beside `java`; passwords go by the environment, where none can read them."""
    keytool = str(Path(shutil.which(jars.java()) or jars.java()).resolve().with_name("keytool"))
    target = _folder() / f"store-{len(list(_folder().iterdir()))}.p12"
    command = [keytool, "-importkeystore", "-noprompt", "-srckeystore", str(path), "-srcstoretype", "JKS"]
    command += ["-srcstorepass:env", _PASSWORD, "-destkeystore", str(target), "-deststoretype", "PKCS12"]
    command += ["-deststorepass:env", _PASSWORD]
    environment = {**os.environ, _PASSWORD: _plain(password or "")}
    done = subprocess.run(
        command, env=environment, capture_output=True, stdin=subprocess.DEVNULL, check=False
    )
    if done.returncode:
        raise OptionError(f"'{store}.password' does not open the store")
    return target.read_bytes()


@cache
def _folder() -> Path:
    made = Path(tempfile.mkdtemp(prefix="bridge-stores-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def _plain(value: str) -> str:
    return value.reveal() if isinstance(value, Secret) else value

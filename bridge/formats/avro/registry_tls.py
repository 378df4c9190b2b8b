"""Converts the stores in a schema registry's options to PEM files, which is what Python's TLS reads."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

from bridge.config.registry_settings import RegistrySettings
from bridge.errors import OptionError
from bridge.key_stores import KeyStoreError, WrongPasswordError, read_key_store, store_type
from bridge.secret import Secret

__all__ = ["pem_settings"]


def pem_settings(settings: RegistrySettings) -> dict[str, str]:
    """Return the client's settings for both stores; PEM files are used as they are, JKS and PKCS#12 are converted.

    Only this user can read converted files, and they are deleted when the process ends. Raises OptionError for a
    store that cannot be opened.
    """
    client: dict[str, str] = {}
    if settings.truststore:
        client["ssl.ca.location"] = str(_pem_file("ssl.truststore", *settings.truststore))
    if settings.keystore:
        location, password = settings.keystore
        pem = str(_pem_file("ssl.keystore", location, password))
        client |= {"ssl.certificate.location": pem, "ssl.key.location": pem}
        if password is not None and pem == location:
            client["ssl.key.password"] = _reveal(password)
    return client


@cache
def _pem_file(option: str, location: str, password: str | None) -> Path:
    """Return the store as a PEM file: itself, or a converted copy with certificates first and the key last."""
    try:
        if store_type(location) == "PEM":
            return Path(location)
        store = read_key_store(location, None if password is None else _reveal(password))
    except WrongPasswordError as error:
        raise OptionError(f"'{option}.password' does not open the store: it {error}") from None
    except KeyStoreError as error:
        raise OptionError(f"'{option}.location' {error}") from None
    certificates = dict.fromkeys((*store.chain, *store.trusted))  # PKCS#12 lists issuers among both
    if not certificates:
        raise OptionError(f"'{option}.location' holds no certificate")
    # A name of its own, and readable for this user alone: another thread may convert another store meanwhile.
    number, name = tempfile.mkstemp(".pem", f"{option}-", _folder())
    os.close(number)
    copy = Path(name)
    copy.write_text("".join((*certificates, store.key or "")))
    return copy


@cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="bridge-stores-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _reveal(value: str) -> str:
    return value.reveal() if isinstance(value, Secret) else value

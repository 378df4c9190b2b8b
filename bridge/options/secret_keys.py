"""Decides which values of WITH are secret."""

from __future__ import annotations

import re

from bridge.options.properties.model import PREFIX

_PUBLIC_SASL = ("sasl.mechanism", "sasl.kerberos.service.name")
_SECRET = re.compile(
    r"password|passphrase|secret|token|credential|jaas|user[.-]info|private|(^|[.-])key$|certificate"
)


def is_secret(key: str) -> bool:
    """Returns True if the value of this WITH key or client setting must never be shown."""
    name = key.removeprefix(PREFIX)
    if name.startswith("sasl."):
        return name not in _PUBLIC_SASL
    return bool(_SECRET.search(name.lower()))

"""Detects an expired broker certificate, for which librdkafka only reports that verification failed."""

from __future__ import annotations

import ssl
from datetime import datetime, timezone

from cryptography import x509

__all__ = ["expired_certificate"]

_SECONDS = 5.0


def expired_certificate(servers: str, error_text: str) -> str:
    """Return when the certificate of a broker expired, as a note to librdkafka's `error_text`; else an empty text.

    It looks at the first of `servers` that shows a certificate, and only if verification failed. It opens a TLS
    connection without a client certificate and sends nothing else.
    """
    if "certificate verify failed" not in error_text:
        return ""
    for server in servers.split(","):
        host, _, port = server.strip().rpartition(":")
        try:
            pem = ssl.get_server_certificate((host.strip("[]"), int(port)), timeout=_SECONDS)
            expiry = x509.load_pem_x509_certificate(pem.encode()).not_valid_after_utc
        except (OSError, ValueError):
            continue
        if expiry < datetime.now(timezone.utc):
            return f" (the certificate of {server.strip()} has expired: it was valid until {expiry:%Y-%m-%d %H:%M} UTC)"
        return ""
    return ""

"""What is wrong with a broker's certificate, where librdkafka only says that it cannot be verified."""

from __future__ import annotations

import ssl
from datetime import datetime, timezone

from cryptography import x509

__all__ = ["expired_certificate"]

_SECONDS = 5.0


def expired_certificate(servers: str, error_text: str) -> str:
    """For `said`, librdkafka's words: when the certificate of the first of `servers` that shows one ended, if it did;
    else, and for other troubles, an empty text. Sends nothing but a greeting, and no client certificate."""
    if "certificate verify failed" not in error_text:
        return ""
    for server in servers.split(","):
        host, _, port = server.strip().rpartition(":")
        try:
            shown = ssl.get_server_certificate((host.strip("[]"), int(port)), timeout=_SECONDS)
            ended = x509.load_pem_x509_certificate(shown.encode()).not_valid_after_utc
        except (OSError, ValueError):
            continue
        if ended < datetime.now(timezone.utc):
            return f" (the certificate of {server.strip()} has expired: it was good until {ended:%Y-%m-%d %H:%M} UTC)"
        return ""
    return ""

"""Settings of TLS. librdkafka uses OpenSSL, to which Java classes and Java names do not apply."""

from __future__ import annotations

from bridge.options.kinds import Kind, choice
from bridge.options.properties.model import ALL_CLIENTS, NAME, TEXT, Setting, Treatment, all_clients, refused

__all__ = ["TLS"]

_OPENSSL = (
    "librdkafka, with which the bridge sends records and looks up offsets, uses OpenSSL and cannot load Java classes; "
    "remove it"
)
_VERSIONS = (
    "librdkafka, with which the bridge sends records and looks up offsets, cannot disable TLS 1.2 or TLS 1.3; remove "
    "it, and set 'ssl.enabled.protocols' in the broker"
)
_SUITES = (
    "librdkafka, with which the bridge sends records and looks up offsets, uses OpenSSL's names of cipher suites and "
    "cannot select those of TLS 1.3; remove it, and set 'ssl.cipher.suites' in the broker"
)
_STORES = choice("JKS", "PKCS12", "PEM")


def _store(key: str, kind: Kind[str] = TEXT, reason: str = "") -> Setting:
    return Setting(
        key,
        kind,
        Treatment.TRANSLATED,
        ALL_CLIENTS,
        reason=reason or "librdkafka receives the content as PEM",
    )


def _endpoint(text: str) -> str:
    return text or "none"


def _https(text: str) -> str:
    if text.lower() not in ("https", ""):
        raise ValueError(text)
    return text.lower()


_ENDPOINT: Kind[str] = Kind("String", _https, "https, or empty to disable the check of host names")

TLS: tuple[Setting, ...] = (
    all_clients("security.protocol", choice("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")),
    all_clients(
        "ssl.endpoint.identification.algorithm",
        _ENDPOINT,
        convert=_endpoint,
        reason="empty is none in librdkafka",
    ),
    all_clients("ssl.key.password", TEXT),
    _store("ssl.keystore.location", NAME),
    _store("ssl.keystore.password"),
    _store(
        "ssl.keystore.type",
        _STORES,
        "librdkafka receives the content as PEM; JKS and PKCS12 are detected from the file",
    ),
    all_clients("ssl.keystore.certificate.chain", NAME, "ssl.certificate.pem"),
    all_clients("ssl.keystore.key", NAME, "ssl.key.pem"),
    _store("ssl.truststore.location", NAME),
    _store("ssl.truststore.password"),
    _store(
        "ssl.truststore.type",
        _STORES,
        "librdkafka receives the content as PEM; JKS and PKCS12 are detected from the file",
    ),
    all_clients("ssl.truststore.certificates", NAME, "ssl.ca.pem"),
    refused("ssl.cipher.suites", _SUITES, ""),
    refused("ssl.enabled.protocols", _VERSIONS, "TLSv1.2,TLSv1.3"),
    refused("ssl.protocol", _VERSIONS, "TLSv1.3"),
    refused("ssl.engine.factory.class", _OPENSSL),
    refused("ssl.keymanager.algorithm", _OPENSSL, "SunX509"),
    refused("ssl.provider", _OPENSSL),
    refused("ssl.secure.random.implementation", _OPENSSL),
    refused("ssl.trustmanager.algorithm", _OPENSSL, "PKIX"),
    refused("security.providers", _OPENSSL),
)

"""Refuses client settings that contradict each other, and PEM text that one of the clients could not parse.

So `bridge validate` refuses what a client would refuse when it starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bridge.errors import OptionError
from bridge.options.properties.catalog import SETTINGS
from bridge.options.properties.login import login
from bridge.options.properties.model import INT_MAX, PREFIX

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


_LINGER_MS = 20  # default of the bridge
_TRANSACTION_MS = 60_000  # default of the bridge
_DELIVERY_MS = 300_000  # default of librdkafka
_UPPER_BOUNDS = (
    ("reconnect.backoff.ms", 100, "reconnect.backoff.max.ms", 10_000),
    ("sasl.login.retry.backoff.ms", 100, "sasl.login.retry.backoff.max.ms", 10_000),
    # The Java client uses the first setting in place of the second if the second is not set.
    ("request.timeout.ms", 30_000, "default.api.timeout.ms", INT_MAX),
)
"""Pairs of settings with their defaults; the first must not be greater than the second."""

_STORES = {
    "keystore": ("ssl.keystore.key", "ssl.keystore.certificate.chain"),
    "truststore": ("ssl.truststore.certificates",),
}


def check_combinations(settings: Mapping[str, str], guarantee: str = "at-least-once") -> None:
    """Refuses settings (Java names, secrets in clear text, each legal by itself) that contradict each other.

    Raises OptionError that names the settings and shows no secret.
    """
    login(settings)
    _check_upper_bounds(settings)
    _check_producer(settings, guarantee)
    if _protocol(settings) in ("SSL", "SASL_SSL"):
        for store in _STORES:
            _check_store(settings, store)
        check_pem(settings)


def unused_security_settings(settings: Mapping[str, str]) -> Iterator[str]:
    """Yields a warning for `ssl.*` and for `sasl.*` settings that have no effect with this `security.protocol`."""
    protocol = _protocol(settings)
    for family, needed in (("ssl.", "SSL"), ("sasl.", "SASL")):
        given = sorted(key for key in settings if key.startswith(family) and SETTINGS[key].is_applied)
        if given and needed not in protocol.split("_"):
            names, verb = ", ".join(f"'{PREFIX}{key}'" for key in given), "have" if len(given) > 1 else "has"
            yield f"{names} {verb} no effect with 'properties.security.protocol' = '{protocol}'"


def _protocol(settings: Mapping[str, str]) -> str:
    return settings.get("security.protocol", "PLAINTEXT").strip().upper()


def _value(settings: Mapping[str, str], key: str, default: int) -> int:
    return int(SETTINGS[key].parse(settings[key])) if key in settings else default


def _check_upper_bounds(settings: Mapping[str, str]) -> None:
    for lower_key, lower_default, upper_key, upper_default in _UPPER_BOUNDS:
        if _value(settings, lower_key, lower_default) > _value(settings, upper_key, upper_default):
            default = "" if upper_default == INT_MAX else f" (default: {upper_default})"
            raise OptionError(
                f"'{PREFIX}{lower_key}' (default: {lower_default}) must not be greater than "
                f"'{PREFIX}{upper_key}'{default}; change one of them"
            )


def _check_producer(settings: Mapping[str, str], guarantee: str) -> None:
    acks_all = settings.get("acks", "all").strip() in ("all", "-1")
    idempotence_enabled = SETTINGS["enable.idempotence"].parse(settings.get("enable.idempotence", "true"))
    if guarantee == "exactly-once":
        if not acks_all or not idempotence_enabled:
            raise OptionError(
                "'sink.delivery-guarantee' = 'exactly-once' requires 'properties.acks' = 'all' and "
                "'properties.enable.idempotence' = 'true', which are the defaults; remove both"
            )
        _check_transactions(settings)
    elif not acks_all and idempotence_enabled and "enable.idempotence" in settings:
        raise OptionError(
            "'properties.enable.idempotence' = 'true' requires 'properties.acks' = 'all'; remove one of them"
        )
    # A producer with the guarantee `none` is idempotent only if `acks` or `enable.idempotence` is set.
    if (
        acks_all
        and idempotence_enabled
        and (guarantee != "none" or "acks" in settings or "enable.idempotence" in settings)
    ):
        way_out = "for an idempotent producer; change it, or set 'properties.enable.idempotence' = 'false'"
        if _value(settings, "max.in.flight.requests.per.connection", 5) > 5:
            raise OptionError(
                f"'properties.max.in.flight.requests.per.connection' must be at most 5 {way_out}"
            )
        if _value(settings, "retries", 1) < 1:
            raise OptionError(f"'properties.retries' must be at least 1 {way_out}")
    if guarantee != "exactly-once" or "delivery.timeout.ms" in settings:
        linger = _value(settings, "linger.ms", _LINGER_MS)
        if _value(settings, "delivery.timeout.ms", _DELIVERY_MS) <= linger:
            raise OptionError(
                f"'properties.delivery.timeout.ms' (default: {_DELIVERY_MS}) must be greater than "
                f"'properties.linger.ms' (default: {_LINGER_MS}); change one of them"
            )


def _check_transactions(settings: Mapping[str, str]) -> None:
    if settings.get("metadata.recovery.strategy", "none").strip().lower() != "none":
        raise OptionError(
            "'sink.delivery-guarantee' = 'exactly-once' requires 'properties.metadata.recovery.strategy' = 'none', "
            "since a transaction would wait forever for a broker that restarts; remove it"
        )
    transaction_timeout = _value(settings, "transaction.timeout.ms", _TRANSACTION_MS)
    for key in ("delivery.timeout.ms", "request.timeout.ms"):
        if _value(settings, key, 0) > transaction_timeout:
            raise OptionError(
                f"'{PREFIX}{key}' must not be greater than 'properties.transaction.timeout.ms' (default: "
                f"{_TRANSACTION_MS}) with 'sink.delivery-guarantee' = 'exactly-once'; change one of them"
            )


def _check_store(settings: Mapping[str, str], store: str) -> None:
    """Checks a key store or trust store by the rules of DefaultSslEngineFactory in Kafka's Java client."""
    location, password, kind = (f"ssl.{store}.{name}" for name in ("location", "password", "type"))
    inline = [key for key in _STORES[store] if key in settings]
    pem = settings.get(kind, "").strip().upper() == "PEM"
    if inline and location in settings:
        raise OptionError(
            f"'{PREFIX}{inline[0]}' and '{PREFIX}{location}' are alternatives; set only one of them"
        )
    if inline and not pem:
        raise OptionError(
            f"'{PREFIX}{inline[0]}' requires '{PREFIX}{kind}' = 'PEM', since it contains PEM text"
        )
    if inline and len(inline) < len(_STORES[store]):
        raise OptionError(
            f"{' and '.join(repr(PREFIX + k) for k in _STORES[store])} require each other; set both"
        )
    if password in settings and pem:
        raise OptionError(f"'{PREFIX}{password}' is refused: a PEM file has no password; remove it")
    if password in settings and location not in settings:
        raise OptionError(f"'{PREFIX}{password}' has no effect without '{PREFIX}{location}'; set both")
    if store == "keystore" and location in settings and password not in settings and not pem:
        raise OptionError(
            f"'{PREFIX}{password}' is missing; Kafka's Java client cannot open '{PREFIX}{location}' without it"
        )

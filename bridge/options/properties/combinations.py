"""What settings ask of each other. Both clients make these rules; whichever would refuse, `validate` does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bridge.errors import OptionError
from bridge.options.properties.catalog import SETTINGS
from bridge.options.properties.login import login
from bridge.options.properties.model import INT_MAX, PREFIX
from bridge.options.properties.pem import check_pem

__all__ = ["check_together", "useless"]

_LINGER_MS = 20  # the bridge's own
_TRANSACTION_MS = 60_000  # the bridge's own
_DELIVERY_MS = 300_000  # librdkafka's
_ORDERS = (
    ("reconnect.backoff.ms", 100, "reconnect.backoff.max.ms", 10_000),
    ("sasl.login.retry.backoff.ms", 100, "sasl.login.retry.backoff.max.ms", 10_000),
    # Without the second one Java takes the first for it.
    ("request.timeout.ms", 30_000, "default.api.timeout.ms", INT_MAX),
)
"""Two settings, what they are where they are not set; the first must not be above the second."""

_STORES = {
    "keystore": ("ssl.keystore.key", "ssl.keystore.certificate.chain"),
    "truststore": ("ssl.truststore.certificates",),
}


def check_together(plain: Mapping[str, str], guarantee: str = "at-least-once") -> None:
    """Refuse settings (Java names, secrets in clear, each legal by itself) that contradict each other.

    Raises OptionError that names them, without a secret.
    """
    login(plain)
    _check_orders(plain)
    _check_sending(plain, guarantee)
    if _protocol(plain) in ("SSL", "SASL_SSL"):
        for store in _STORES:
            _check_store(plain, store)
        check_pem(plain)


def useless(plain: Mapping[str, str]) -> Iterator[str]:
    """A sentence for settings that `security.protocol` gives no effect."""
    protocol = _protocol(plain)
    for family, needed in (("ssl.", "SSL"), ("sasl.", "SASL")):
        given = sorted(key for key in plain if key.startswith(family) and SETTINGS[key].taken)
        if given and needed not in protocol.split("_"):
            names, verb = ", ".join(f"'{PREFIX}{key}'" for key in given), "have" if len(given) > 1 else "has"
            yield f"{names} {verb} no effect with 'properties.security.protocol' = '{protocol}'"


def _protocol(plain: Mapping[str, str]) -> str:
    return plain.get("security.protocol", "PLAINTEXT").strip().upper()


def _value(plain: Mapping[str, str], key: str, default: int) -> int:
    return int(SETTINGS[key].parse(plain[key])) if key in plain else default


def _check_orders(plain: Mapping[str, str]) -> None:
    for less, low, more, high in _ORDERS:
        if _value(plain, less, low) > _value(plain, more, high):
            unset = "" if high == INT_MAX else f" ({high} where it is not set)"
            raise OptionError(
                f"'{PREFIX}{less}' ({low} where it is not set) must not be above '{PREFIX}{more}'{unset}"
            )


def _check_sending(plain: Mapping[str, str], guarantee: str) -> None:
    idempotent = plain.get("acks", "all").strip() in ("all", "-1")
    asked = SETTINGS["enable.idempotence"].parse(plain.get("enable.idempotence", "true"))
    if guarantee == "exactly-once":
        if not idempotent or not asked:
            raise OptionError(
                "'sink.delivery-guarantee' = 'exactly-once' needs 'properties.acks' = 'all' and "
                "'properties.enable.idempotence' = 'true'; leave both out"
            )
        _check_transactions(plain)
    elif not idempotent and asked and "enable.idempotence" in plain:
        raise OptionError(
            "'properties.enable.idempotence' = 'true' needs 'properties.acks' = 'all'; leave one of them out"
        )
    # Without waiting for all brokers nothing is idempotent unless it is asked for.
    if idempotent and asked and (guarantee != "none" or "acks" in plain or "enable.idempotence" in plain):
        way_out = "with idempotence; change it, or set 'properties.enable.idempotence' = 'false'"
        if _value(plain, "max.in.flight.requests.per.connection", 5) > 5:
            raise OptionError(
                f"'properties.max.in.flight.requests.per.connection' must be at most 5 {way_out}"
            )
        if _value(plain, "retries", 1) < 1:
            raise OptionError(f"'properties.retries' must be at least 1 {way_out}")
    if guarantee != "exactly-once" or "delivery.timeout.ms" in plain:
        linger = _value(plain, "linger.ms", _LINGER_MS)
        if _value(plain, "delivery.timeout.ms", _DELIVERY_MS) <= linger:
            raise OptionError(
                f"'properties.delivery.timeout.ms' ({_DELIVERY_MS} where it is not set) must be above "
                f"'properties.linger.ms' ({_LINGER_MS} where it is not set)"
            )


def _check_transactions(plain: Mapping[str, str]) -> None:
    if plain.get("metadata.recovery.strategy", "none").strip().lower() != "none":
        raise OptionError(
            "'sink.delivery-guarantee' = 'exactly-once' needs 'properties.metadata.recovery.strategy' = 'none': a "
            "transaction would wait for ever for a broker that restarts; leave it out"
        )
    most = _value(plain, "transaction.timeout.ms", _TRANSACTION_MS)
    for key in ("delivery.timeout.ms", "request.timeout.ms"):
        if _value(plain, key, 0) > most:
            raise OptionError(
                f"'{PREFIX}{key}' must not be above 'properties.transaction.timeout.ms' ({_TRANSACTION_MS} where it is "
                "not set) with 'sink.delivery-guarantee' = 'exactly-once'"
            )


def _check_store(plain: Mapping[str, str], store: str) -> None:
    """The rules of Java's DefaultSslEngineFactory."""
    location, password, kind = (f"ssl.{store}.{name}" for name in ("location", "password", "type"))
    inline = [key for key in _STORES[store] if key in plain]
    pem = plain.get(kind, "").strip().upper() == "PEM"
    if inline and location in plain:
        raise OptionError(f"'{PREFIX}{inline[0]}' and '{PREFIX}{location}' say the same; set one of them")
    if inline and not pem:
        raise OptionError(
            f"'{PREFIX}{inline[0]}' is PEM, which Java reads only with '{PREFIX}{kind}' = 'PEM'; set that"
        )
    if inline and len(inline) < len(_STORES[store]):
        raise OptionError(f"{' and '.join(repr(PREFIX + k) for k in _STORES[store])} go together; set both")
    if password in plain and pem:
        raise OptionError(f"'{PREFIX}{password}' is refused: a PEM file has none; leave it out")
    if password in plain and location not in plain:
        raise OptionError(f"'{PREFIX}{password}' has no effect without '{PREFIX}{location}'; set both")
    if store == "keystore" and location in plain and password not in plain and not pem:
        raise OptionError(
            f"'{PREFIX}{password}' is missing, without which Java opens no '{PREFIX}{location}'"
        )

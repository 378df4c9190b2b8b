"""Decimals as Java writes them: BigDecimal.stripTrailingZeros().toString(), or toPlainString() with all digits."""

from __future__ import annotations

from decimal import Context, Decimal

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["decimal_texts"]

_ALL_DIGITS = Context(prec=76)


def decimal_texts(values: pa.Array, *, plain: bool) -> pa.Array:
    """Return the texts of DECIMALs: `plain` with all digits of their scale, else without zeros at their end and with an
    exponent where Java writes one; null stays null.

    An exponent is written for multiples of ten and for numbers below 0.000001.
    """
    texts = values.cast(pa.string())
    if values.type.scale and not plain:
        texts = pc.ascii_rtrim(pc.ascii_rtrim(texts, "0"), ".")
    # Arrow's own exponents are those of very small numbers, and of a zero with many decimal places.
    odd = pc.match_substring(texts, "E") if values.type.scale > _PLAIN_PLACES else None
    if not plain:
        tens = pc.and_(pc.ends_with(texts, "0"), pc.not_equal(texts, "0"))
        odd = tens if odd is None else pc.or_(odd, tens)
    if odd is None or not pc.any(odd).as_py():
        return texts
    distinct = values.filter(odd).dictionary_encode()
    made = pa.array([_text(value, plain) for value in distinct.dictionary.to_pylist()], pa.string())
    return pc.replace_with_mask(texts, odd, made.take(distinct.indices))


_PLAIN_PLACES = 6
"""Decimal places up to which Arrow writes all numbers without an exponent."""


def _text(value: Decimal, plain: bool) -> str:
    """Return one text: Python's rules for exponents are Java's."""
    return format(value, "f") if plain else str(value.normalize(_ALL_DIGITS))

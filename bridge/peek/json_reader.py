"""Reads JSON documents, those of CDC formats included, as they are."""

from __future__ import annotations

import json
from decimal import Decimal

from bridge.definition import FormatSpec
from bridge.peek.base import Reader, Undecodable, as_json


def reader(spec: FormatSpec) -> Reader:
    """Return the document's own text, so that numbers keep their digits."""
    return _read


def _read(document: bytes) -> str:
    try:
        text = document.decode()
        value = json.loads(text, parse_constant=_refuse_constant, parse_float=Decimal)
    except UnicodeDecodeError as bad:
        raise Undecodable(f"not UTF-8 at byte {bad.start}") from None
    except (ValueError, RecursionError) as bad:
        place = f" at character {bad.pos}" if isinstance(bad, json.JSONDecodeError) else ""
        raise Undecodable(f"not JSON{place}") from None
    return text if "\n" not in text and "\r" not in text else as_json(value)


def _refuse_constant(_: str) -> None:
    raise ValueError("NaN and Infinity are no JSON")

"""The Arrow decoders of the formats that `options.formats` declares."""

from __future__ import annotations

from bridge.arrow_formats.base import ArrowDecoder
from bridge.definition import FormatSpec
from bridge.options.formats import FORMATS, load

__all__ = ["arrow_decoder"]


def arrow_decoder(spec: FormatSpec) -> ArrowDecoder | str:
    """Return the decoder of `spec`, or why there is none, as the end of a sentence."""
    reference = FORMATS[spec.name].arrow
    if not reference:
        return f"the format is {spec.name}"
    found: ArrowDecoder | str = load(reference)(spec)
    return found

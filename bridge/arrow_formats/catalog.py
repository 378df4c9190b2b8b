"""The Arrow decoders and encoders of the formats that `options.formats` declares."""

from __future__ import annotations

from collections.abc import Sequence

from bridge.arrow_formats.base import ArrowDecoder, ArrowEncoder, ChangeArrowDecoder
from bridge.definition import FormatSpec
from bridge.options.formats import FORMATS, load

__all__ = ["arrow_decoder", "arrow_encoder", "change_arrow_decoder"]


def arrow_decoder(spec: FormatSpec) -> ArrowDecoder | str:
    """Return the decoder of `spec`, or why there is none, as the end of a sentence."""
    reference = FORMATS[spec.name].arrow
    if not reference:
        return f"the format is {spec.name}"
    found: ArrowDecoder | str = load(reference)(spec)
    return found


def change_arrow_decoder(spec: FormatSpec, key: Sequence[str]) -> ChangeArrowDecoder | str:
    """Return the decoder of changes of a table with this `key`, or why there is none, as the end of a sentence."""
    reference = FORMATS[spec.name].arrow_changes
    if not reference:
        return f"the format is {spec.name}"
    found: ChangeArrowDecoder | str = load(reference)(spec, key)
    return found


def arrow_encoder(spec: FormatSpec) -> ArrowEncoder | str:
    """Return the encoder of `spec`, or why there is none, as the end of a sentence."""
    reference = FORMATS[spec.name].arrow_encoder
    if not reference:
        return f"the format is {spec.name}"
    found: ArrowEncoder | str = load(reference)(spec)
    return found

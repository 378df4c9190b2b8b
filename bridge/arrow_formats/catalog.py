"""The Arrow decoders and encoders of the formats that `options.formats` declares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bridge.arrow_formats.base import ArrowDecoder, ArrowEncoder, ChangeArrowDecoder
from bridge.definition import FormatSpec
from bridge.options.formats import FORMATS, load
from bridge.ways import NotThisWay


def arrow_decoder(spec: FormatSpec) -> ArrowDecoder:
    """Return the decoder of `spec`. Raises NotThisWay where there is none."""
    found: ArrowDecoder = _loaded(spec, FORMATS[spec.name].arrow)(spec)
    return found


def change_arrow_decoder(spec: FormatSpec, key: Sequence[str]) -> ChangeArrowDecoder:
    """Return the decoder of changes of a table with this `key`. Raises NotThisWay where there is none."""
    found: ChangeArrowDecoder = _loaded(spec, FORMATS[spec.name].arrow_changes)(spec, key)
    return found


def arrow_encoder(spec: FormatSpec) -> ArrowEncoder:
    """Return the encoder of `spec`. Raises NotThisWay where there is none."""
    found: ArrowEncoder = _loaded(spec, FORMATS[spec.name].arrow_encoder)(spec)
    return found


def _loaded(spec: FormatSpec, reference: str) -> Any:
    if not reference:
        raise NotThisWay(f"the format is {spec.name}")
    return load(reference)

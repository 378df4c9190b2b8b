"""Payload bytes to what a format's decoder makes of them, as one more column of a frame."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame

from bridge.definition import FormatSpec
from bridge.formats import catalog
from bridge.formats.base import PAYLOAD, Decoder, FastPathDecoder

__all__ = ["decoded"]


def decoded(
    frame: DataFrame,
    spec: FormatSpec,
    payload: Column,
    name: str,
    *,
    key: Sequence[str] = (),
    fast: bool,
) -> tuple[DataFrame, Decoder]:
    """`frame` with the column `name` (see formats.base.Decoded), and the decoder that made it.

    Without `fast` a format may run a Spark job over `payload` first, to learn which schemas are in it. With it, keep
    the frame before filtering it: Spark moves a filter below the steps, and then takes each as often as it is used.
    """
    decoder = catalog.get(spec.name).decoder(spec.row, spec.options, metadata=spec.metadata, key=key)
    if fast and isinstance(decoder, FastPathDecoder):
        return decoder.decode_fast(frame, payload, name), decoder
    if not fast:
        decoder = decoder.for_payloads(frame.select(payload.alias(PAYLOAD)))
    return frame.withColumn(name, decoder.decode(payload, fast=fast)), decoder

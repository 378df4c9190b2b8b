"""Adds the decoded column of a document to a frame."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame

from bridge.definition import FormatSpec
from bridge.formats import catalog
from bridge.formats.base import PAYLOAD, Decoder, FastPathDecoder


def with_decoded(
    frame: DataFrame,
    spec: FormatSpec,
    payload: Column,
    name: str,
    *,
    key: Sequence[str] = (),
    fast: bool,
) -> tuple[DataFrame, Decoder]:
    """Return `frame` with the column `name` (see formats.base.DecodedColumn), and the decoder that made it.

    With `fast` a FastPathDecoder takes its fast path; every other decoder decodes fully. A full decode may run a Spark
    job over `payload` first, to find out which schemas the documents name. Persist the frame of a fast path before
    filtering it: Spark would push the filter below the columns and evaluate each as often as it is used.
    """
    decoder = catalog.get(spec.name).decoder(spec.row, spec.options, metadata=spec.metadata, key=key)
    if fast and isinstance(decoder, FastPathDecoder):
        return decoder.decode_fast(frame, payload, name), decoder
    decoder = decoder.for_payloads(frame.select(payload.alias(PAYLOAD)))
    return frame.withColumn(name, decoder.decode(payload)), decoder

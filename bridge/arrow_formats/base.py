"""The Protocol of a decoder that turns payloads into Arrow columns.

    decoder = arrow_decoder(topic.value)
    table = decoder.decode(pa.array([b'{"id": 1}'], pa.binary()))

Decoders are sent to Python workers, so they are plain values, and their modules import little.
"""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

__all__ = ["ArrowDecoder", "NeedsFullDecode"]


class NeedsFullDecode(Exception):
    """A payload that Spark's path may read otherwise, or refuse; the message says which kind, and has no payload."""


class ArrowDecoder(Protocol):
    """Turns the payloads of one format into rows of a fixed shape."""

    def decode(self, payloads: pa.BinaryArray) -> pa.Table:
        """Return one row for each payload, in their order, in the Arrow types that Spark gives for the row's fields.

        `payloads` has no null. Raises NeedsFullDecode unless Spark's path (`formats.base.Decoder`) gives one row of the
        same values for each payload.
        """
        ...

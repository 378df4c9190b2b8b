"""Bytes as text, and documents as the lines of one text."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from bridge.ways import NotThisWay

_MOST_BYTES = 2**31 - 2


def utf_8(values: pa.BinaryArray, what: str) -> pa.StringArray:
    """Return bytes as text. Raises NotThisWay, about `what`, unless all of them are valid UTF-8."""
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:  # its text has payload
        raise NotThisWay(f"{what} is not valid UTF-8") from None


def as_lines(payloads: pa.BinaryArray) -> tuple[pa.StringArray, bytes]:
    """Return documents (at least one) as texts, and joined by line feeds.

    Raises NotThisWay where they take more than 2 GiB, or are not valid UTF-8.
    """
    if pc.sum(pc.binary_length(payloads)).as_py() + len(payloads) > _MOST_BYTES:
        raise NotThisWay("the documents take more than 2 GiB")
    texts = utf_8(payloads, "a document")
    together = pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts)
    return texts, pc.binary_join(together, "\n")[0].as_buffer().to_pybytes()

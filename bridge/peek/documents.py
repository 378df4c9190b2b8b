"""Key and value bytes as JSON text, read by the reader that the format declares.

These readers are not the decoders of an ingest, which check every field against the DDL, in Spark. Here a JSON document
is shown as it is, a CDC document as a whole, and only formats without names in their documents take them from the DDL.
"""

from __future__ import annotations

from bridge.definition import FormatSpec
from bridge.options.formats import FORMATS, load
from bridge.peek.base import Reader


def reader(spec: FormatSpec) -> Reader:
    """Return the reader of documents of `spec`. Calling it may raise KafkaError where a registry does not answer."""
    made: Reader = load(FORMATS[spec.name].reader)(spec)
    return made

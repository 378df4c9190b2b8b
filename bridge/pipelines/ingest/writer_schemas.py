"""The writers' schemas that consumers' decoders need: the driver asks the schema registry, once for each id."""

from __future__ import annotations

from typing import TypeVar

from bridge.arrow_formats.base import SchemaArrowDecoder
from bridge.definition import FormatSpec
from bridge.formats.avro.framing import Subject

_Decoder = TypeVar("_Decoder")


def with_writer_schemas(decoder: _Decoder, spec: FormatSpec) -> _Decoder:
    """Return `decoder` with the schemas that documents of its subject have used so far: on the first call those of the
    subject's newest versions, later also those of every id that Spark's path has looked up in this process.

    A decoder of documents without schema ids is returned as it is. Only schemas reach the decoder: neither the address
    of the registry nor credentials. Raises KafkaError when the registry cannot be reached.
    """
    if not isinstance(decoder, SchemaArrowDecoder):
        return decoder
    subject = Subject(spec.name, spec.options)
    found = subject.connect().schemas_of_subject(subject.name)
    return decoder.with_schemas({id: writer.text for id, writer in found.items() if not writer.problem})

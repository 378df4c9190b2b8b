"""The writers' schemas that consumers' decoders need: the driver asks the schema registry, once for each id."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from bridge.arrow_formats.base import SchemaArrowDecoder, UnknownSchemas
from bridge.definition import FormatSpec
from bridge.formats.avro.framing import Subject

_Decoder = TypeVar("_Decoder")
_Read = TypeVar("_Read")
_MOST_READS = 3


def reading_unknown_schemas(read: Callable[[], _Read], *specs: FormatSpec | None) -> _Read:
    """Do `read`, and again where it raises UnknownSchemas for ids that a registry of `specs` has; `read` calls
    `with_writer_schemas`, which knows them then.

    Raises what `read` raises; UnknownSchemas for ids that no registry has, and where `_MOST_READS` reads have found
    ever new ones.
    """
    for _ in range(_MOST_READS - 1):
        try:
            return read()
        except UnknownSchemas as unknown:
            if not any([_has_all(spec, unknown.ids) for spec in specs if spec is not None]):
                raise
    return read()


def _has_all(spec: FormatSpec, ids: tuple[int, ...]) -> bool:
    """Whether the registry of a format has these schemas, which its subject has used from now on."""
    if "url" not in spec.options:
        return False
    subject = Subject(spec.name, spec.options)
    return subject.connect().schemas_by_id(ids, subject.name).keys() == set(ids)


def with_writer_schemas(decoder: _Decoder, spec: FormatSpec) -> _Decoder:
    """Return `decoder` with the schemas that documents of its subject have used so far: on the first call those of the
    subject's newest versions, later also those of every id that was looked up in this process.

    A decoder of documents without schema ids is returned as it is. Only schemas reach the decoder: neither the address
    of the registry nor credentials. Raises KafkaError when the registry cannot be reached.
    """
    if not isinstance(decoder, SchemaArrowDecoder):
        return decoder
    subject = Subject(spec.name, spec.options)
    found = subject.connect().schemas_of_subject(subject.name)
    return decoder.with_schemas({id: writer.text for id, writer in found.items() if not writer.problem})

"""Client of a schema registry: Avro schemas by id and subject, cached for the life of the process.

`pem_settings` converts the stores in its options to PEM files, which Python's TLS reads.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from bridge.config.registry_settings import RegistrySettings
from bridge.errors import KafkaError, OptionError
from bridge.key_stores import KeyStoreError, WrongPasswordError, read_key_store, store_type
from bridge.secret import Secret

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import RegisteredSchema, Schema, SchemaRegistryClient


def pem_settings(settings: RegistrySettings) -> dict[str, str]:
    """Return the client's settings for both stores; PEM files are used as they are, JKS and PKCS#12 are converted.

    Only this user can read converted files, and they are deleted when the process ends. Raises OptionError for a
    store that cannot be opened.
    """
    client: dict[str, str] = {}
    if settings.truststore:
        client["ssl.ca.location"] = str(_pem_file("ssl.truststore", *settings.truststore))
    if settings.keystore:
        location, password = settings.keystore
        pem = str(_pem_file("ssl.keystore", location, password))
        client |= {"ssl.certificate.location": pem, "ssl.key.location": pem}
        if password is not None and pem == location:
            client["ssl.key.password"] = _reveal(password)
    return client


@cache
def _pem_file(option: str, location: str, password: str | None) -> Path:
    """Return the store as a PEM file: itself, or a converted copy with certificates first and the key last."""
    try:
        if store_type(location) == "PEM":
            return Path(location)
        store = read_key_store(location, None if password is None else _reveal(password))
    except WrongPasswordError as error:
        raise OptionError(f"'{option}.password' does not open the store: it {error}") from None
    except KeyStoreError as error:
        raise OptionError(f"'{option}.location' {error}") from None
    certificates = dict.fromkeys((*store.chain, *store.trusted))  # PKCS#12 lists issuers among both
    if not certificates:
        raise OptionError(f"'{option}.location' holds no certificate")
    # A name of its own, and readable for this user alone: another thread may convert another store meanwhile.
    number, name = tempfile.mkstemp(".pem", f"{option}-", _folder())
    os.close(number)
    copy = Path(name)
    copy.write_text("".join((*certificates, store.key or "")))
    return copy


@cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="bridge-stores-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _reveal(value: str) -> str:
    return value.reveal() if isinstance(value, Secret) else value


T = TypeVar("T")

_NOT_FOUND = 404
_NEWEST_VERSIONS = 5
_lock = threading.Lock()
_clients: dict[RegistrySettings, RegistryClient] = {}


@dataclass(frozen=True)
class WriterSchema:
    """The Avro schema of an id as JSON, or the reason why documents with this id cannot be decoded."""

    text: str = ""
    problem: str = ""


def registry_client(settings: RegistrySettings) -> RegistryClient:
    """Return this process's client for the settings."""
    with _lock:
        if settings not in _clients:
            _clients[settings] = RegistryClient(settings)
        return _clients[settings]


class RegistryClient:
    """A schema registry's client. Every method may raise KafkaError, with the address but never the credentials.

    An id's schema never changes, so it is requested once. Safe to use from several threads: so is HTTPX, by which
    confluent_kafka's client asks ("HTTPX is intended to be thread-safe"), and each dictionary changes in one step.
    """

    def __init__(self, settings: RegistrySettings) -> None:
        self.settings = settings
        self._client: SchemaRegistryClient | None = None
        self._schemas: dict[int, WriterSchema] = {}
        self._ids_by_subject: dict[str, dict[int, None]] = {}
        self._registered: dict[tuple[str, str], int] = {}

    def schemas_of_subject(self, subject: str | None) -> dict[int, WriterSchema]:
        """Return the schemas that documents of `subject` have used so far; at first those of its newest versions."""
        if subject is not None and subject not in self._ids_by_subject:
            versions = self._call(f"the versions of '{subject}'", lambda c: c.get_versions(subject)) or []
            ids = []
            for number in versions[-_NEWEST_VERSIONS:]:
                version = self._version(subject, number)
                if version is not None and version.schema_id is not None:
                    ids.append(version.schema_id)
            self._ids_by_subject[subject] = dict.fromkeys(ids)
        return self.schemas_by_id(self._ids_by_subject.get(subject or "", ()), subject)

    def schemas_by_id(self, ids: Iterable[int], subject: str | None) -> dict[int, WriterSchema]:
        """Return the schemas of `ids`, without unknown ids."""
        # A copy, as another thread may add ids while this one waits for the registry.
        schemas = {id: schema for id in tuple(ids) if (schema := self._schema(id)) is not None}
        self._ids_by_subject.setdefault(subject or "", {}).update(dict.fromkeys(schemas))
        return schemas

    def register(self, subject: str, schema: str) -> int:
        """Return the id of `schema` under `subject`; registers it unless `auto.register.schemas` is false.

        With `use.latest.version`, return the id of the subject's newest schema instead, whatever that is.
        """
        if self.settings.use_latest:
            latest = self._call(f"'{subject}'", lambda c: c.get_latest_version(subject))
            if latest is None or latest.schema_id is None:
                raise self._failed(f"subject '{subject}' has no schema to be the latest one")
            return int(latest.schema_id)
        if (subject, schema) not in self._registered:
            id = self._registered[subject, schema] = self._register(subject, schema)
            self._ids_by_subject.setdefault(subject, {})[id] = None
        return self._registered[subject, schema]

    def _register(self, subject: str, schema: str) -> int:
        from confluent_kafka.schema_registry import Schema

        avro_schema, normalize = Schema(schema, "AVRO"), self.settings.normalize
        if self.settings.auto_register:
            id = self._call(
                f"registering under '{subject}'",
                lambda c: c.register_schema(subject, avro_schema, normalize_schemas=normalize),
            )
            if id is None:
                raise self._failed(f"it has no subject '{subject}' and does not create it")
            return int(id)
        version = self._call(f"'{subject}'", lambda c: c.lookup_schema(subject, avro_schema, normalize))
        if version is None or version.schema_id is None:
            raise self._failed(
                f"the table's schema is not registered under '{subject}', and 'auto.register.schemas' is false"
            )
        return int(version.schema_id)

    def _version(self, subject: str, number: int | None) -> RegisteredSchema | None:
        return self._call(f"'{subject}'", lambda client: client.get_version(subject, number or "latest"))

    def _schema(self, id: int) -> WriterSchema | None:
        if id not in self._schemas:
            schema = self._call(f"schema id {id}", lambda c: c.get_schema(id))
            if schema is None:
                return None
            self._schemas[id] = self._readable(schema)
        return self._schemas[id]

    def _readable(self, schema: Schema) -> WriterSchema:
        if schema.schema_type not in (None, "AVRO"):
            return WriterSchema(problem=f"is of type {schema.schema_type}, not AVRO")
        if not schema.references:
            return WriterSchema(str(schema.schema_str))
        return WriterSchema(json.dumps(self._inlined(schema, set())))

    def _inlined(self, schema: Schema, done: set[str]) -> Any:
        """Return the schema with the first use of each referenced type replaced by its definition."""
        raw = json.loads(schema.schema_str or "null")
        for reference in schema.references or []:
            if reference.name in done:
                continue
            done.add(str(reference.name))
            version = self._version(str(reference.subject), reference.version)
            if version is None:
                raise self._failed(f"subject '{reference.subject}', which a schema refers to, does not exist")
            raw, _ = _replace_first(raw, str(reference.name), self._inlined(version.schema, done))
        return raw

    def _call(self, what: str, request: Callable[[SchemaRegistryClient], T]) -> T | None:
        """Return the response; None for what the registry does not have."""
        from confluent_kafka.schema_registry.error import SchemaRegistryError

        try:
            if self._client is None:
                self._client = _connect(self.settings)
            return request(self._client)
        except SchemaRegistryError as error:
            if error.http_status_code == _NOT_FOUND:
                return None
            if error.http_status_code in (401, 403):
                raise self._failed(
                    f"it refuses the credentials ({error.http_status_code}) for {what}; see 'basic-auth.*', "
                    "'bearer-auth.*'"
                ) from None
            raise self._failed(f"{what}: {error.error_message} ({error.http_status_code})") from None
        except KafkaError:
            raise
        except Exception as error:  # of httpx or ssl: their messages may contain the url with its credentials
            raise self._failed(f"{what}: it cannot be reached ({type(error).__name__})") from None

    def _failed(self, why: str) -> KafkaError:
        return KafkaError(f"schema registry {self.settings.shown}: {why}")


def _connect(settings: RegistrySettings) -> SchemaRegistryClient:
    from confluent_kafka.schema_registry import SchemaRegistryClient

    conf = {key: value.reveal() if isinstance(value, Secret) else value for key, value in settings.client}
    return SchemaRegistryClient({**conf, **pem_settings(settings)})


def _replace_first(raw: Any, name: str, definition: Any) -> tuple[Any, bool]:
    """Return `raw` with the first use of the type `name` replaced, and whether there was one."""
    if raw == name:
        return definition, True
    if isinstance(raw, list):
        for at, part in enumerate(raw):
            new_part, replaced = _replace_first(part, name, definition)
            if replaced:
                return [*raw[:at], new_part, *raw[at + 1 :]], True
    if isinstance(raw, dict):
        for key in ("type", "items", "values", "fields"):
            if key in raw:
                new_part, replaced = _replace_first(raw[key], name, definition)
                if replaced:
                    return {**raw, key: new_part}, True
    return raw, False

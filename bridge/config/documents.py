"""Which columns make up the key document and the value document, and under which names."""

from __future__ import annotations

from typing import Any

from bridge.config.registry_settings import registry_settings
from bridge.definition import FormatSpec, Topic
from bridge.errors import DefinitionError, OptionError, UnsupportedError
from bridge.options import FORMATS, UPSERT, FormatUse, TableOptions
from bridge.options.client import is_secret
from bridge.options.general import KEY_FIELDS, KEY_FIELDS_PREFIX, KEY_FORMAT, TOPIC, VALUE_FIELDS_INCLUDE
from bridge.schema import RowField, RowType, TableSchema
from bridge.secret import Secret

__all__ = ["key_columns", "key_document", "refuse_unfit_documents", "value_document"]


def key_columns(given: TableOptions, schema: TableSchema) -> tuple[str, ...]:
    """Columns of the key document, in its order: the PRIMARY KEY, or `key.fields`; () without a key.

    Raises OptionError, in Flink's words, for a name that is no physical column or lacks the prefix.
    """
    if given.connector == UPSERT:
        names, source = schema.primary_key, "the PRIMARY KEY"
    else:
        names, source = _key_fields(given), f"'{KEY_FIELDS.key}'"
    physical = [column.name for column in schema.physical]
    prefix = given.get(KEY_FIELDS_PREFIX) or ""
    for name in names:
        if name not in physical:
            raise OptionError(
                f"Could not find the field '{name}' in the table schema for usage in the key format. "
                "A key field must be a regular, physical column. "
                f"The following columns can be selected in the '{KEY_FIELDS.key}' "
                f"option:\n[{', '.join(physical)}]"
            )
        if not name.startswith(prefix):
            raise OptionError(
                f"All fields in {source} must be prefixed with '{prefix}' when option "
                f"'{KEY_FIELDS_PREFIX.key}' "
                f"is set but field '{name}' is not prefixed."
            )
        if prefix and name == prefix:
            raise OptionError(
                f"'{KEY_FIELDS_PREFIX.key}': without the prefix, key field '{name}' has no name"
            )
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise OptionError(f"{source} names the field '{twice}' twice")
    return names


def _key_fields(given: TableOptions) -> tuple[str, ...]:
    fields = given.get(KEY_FIELDS) or ()
    if given.key_format is None and fields:
        raise OptionError(
            f"The option '{KEY_FIELDS.key}' can only be declared if a key format is defined using "
            f"'{KEY_FORMAT.key}'."
        )
    if given.key_format is not None and not fields:
        raise OptionError(
            f"A key format '{KEY_FORMAT.key}' requires the declaration of one or more of key fields using "
            f"'{KEY_FIELDS.key}'."
        )
    return fields


def key_document(
    given: TableOptions, use: FormatUse, schema: TableSchema, names: tuple[str, ...]
) -> FormatSpec:
    """The key document: `names` in that order, its fields without the prefix."""
    row = schema.row(names, given.get(KEY_FIELDS_PREFIX) or "")
    return FormatSpec(use.declared.name, _options(given, use, "key", names), row, names)


def value_document(
    given: TableOptions, use: FormatUse, schema: TableSchema, keys: tuple[str, ...]
) -> FormatSpec:
    """The value document: physical columns in table order, all of them or all but `keys`.

    Raises OptionError, in Flink's words, for a key prefix together with 'ALL'.
    """
    include, prefix = given.get(VALUE_FIELDS_INCLUDE), given.get(KEY_FIELDS_PREFIX)
    if include == "ALL" and prefix:
        raise OptionError(
            f"A key prefix is not allowed when option '{VALUE_FIELDS_INCLUDE.key}' is set to 'ALL'. "
            "Set it to 'EXCEPT_KEY' instead to avoid field overlaps."
        )
    names = tuple(c.name for c in schema.physical if include == "ALL" or c.name not in keys)
    return FormatSpec(
        use.declared.name,
        _options(given, use, "value", names),
        schema.row(names),
        names,
        _format_metadata(use, schema),
    )


def refuse_unfit_documents(topic: Topic) -> None:
    """Raise what the decoder and the encoder of the key or the value would raise for their schema and options.

    So a mistake is reported when the file is loaded, even where the broker is down."""
    for part, spec in (("key", topic.key), ("value", topic.value)):
        if spec is None:
            continue
        try:
            FORMATS[spec.name].check(spec.row, spec.options)
        except UnsupportedError as error:
            raise UnsupportedError(f"{error} (format of the {part})", error.what) from error
        except DefinitionError as error:
            raise type(error)(f"{error} (format of the {part})") from error


def _options(given: TableOptions, use: FormatUse, part: str, columns: tuple[str, ...]) -> dict[str, Any]:
    """Return the format's options: secret ones as `Secret`, the default subject of a registry from the topic's name.

    Flink names the subject so where it writes; with several topics there is no default. Raises OptionError for columns
    that a format of one column cannot take, and what `registry_settings` raises.
    """
    if use.declared.single_column:
        _check_single_column(use, columns)
    values = {
        key: Secret(value)
        if isinstance(value, str) and (is_secret(key) or use.prefix + key in given.masked)
        else value
        for key, value in given.format_values(use).items()
    }
    if use.declared.registry:
        topics = given.get(TOPIC) or ()
        if len(topics) == 1:
            values.setdefault("subject", f"{topics[0]}-{part}")
        registry_settings(values, use.prefix)
    return values


def _format_metadata(use: FormatUse, schema: TableSchema) -> RowType:
    """Return the format's own metadata that columns of the table read, each key once."""
    types = use.declared.metadata
    keys = dict.fromkeys(c.key.removeprefix("value.") for c in schema.metadata if c.key.startswith("value."))
    return RowType(tuple(RowField(key, types[key]) for key in keys if key in types))


def _check_single_column(use: FormatUse, columns: tuple[str, ...]) -> None:
    name = use.declared.name
    if len(columns) != 1:
        raise OptionError(
            f"'{use.option}' = '{name}': The '{name}' format only supports single physical column. However the defined "
            f"schema contains {len(columns)} of them: [{', '.join(columns)}]. For a key of several columns use another "
            "format; for a value, 'value.fields-include' = 'EXCEPT_KEY' leaves the key's columns out"
        )

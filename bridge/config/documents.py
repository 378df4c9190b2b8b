"""Resolves the key document and the value document: their formats, columns and field names."""

from __future__ import annotations

from typing import Any

from bridge.config.registry_settings import registry_settings
from bridge.definition import FormatSpec, Topic
from bridge.errors import DefinitionError, OptionError, UnsupportedError
from bridge.options import FORMATS, UPSERT, FormatUse, TableOptions
from bridge.options.general import KEY_FIELDS, KEY_FIELDS_PREFIX, KEY_FORMAT, TOPIC, VALUE_FIELDS_INCLUDE
from bridge.options.table_options import is_secret
from bridge.schema import RowField, RowType, TableSchema
from bridge.secret import Secret


def key_columns(given: TableOptions, schema: TableSchema) -> tuple[str, ...]:
    """Returns the columns of the key document in its order: the PRIMARY KEY or `key.fields`; () without a key.

    Raises OptionError, with Flink's messages, for a name that is not a physical column or lacks the prefix.
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
                f"Could not find the field '{name}' in the table schema for usage in the key format. A key field must "
                f"be a regular, physical column. The following columns can be selected in the '{KEY_FIELDS.key}' "
                f"option:\n[{', '.join(physical)}]"
            )
        if not name.startswith(prefix):
            raise OptionError(
                f"All fields in {source} must be prefixed with '{prefix}' when option '{KEY_FIELDS_PREFIX.key}' is set "
                f"but field '{name}' is not prefixed."
            )
        if prefix and name == prefix:
            raise OptionError(
                f"'{KEY_FIELDS_PREFIX.key}': the name of key field '{name}' consists of the prefix only; rename the "
                "column"
            )
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise OptionError(f"{source} lists the field '{twice}' twice")
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
    """Returns the key document, whose fields are `names` in that order, without `key.fields-prefix`."""
    prefix = given.get(KEY_FIELDS_PREFIX) or ""
    row = schema.row(names, prefix, key_is_required=use.declared.has_nullability)
    return FormatSpec(use.declared.name, _options(given, use, "key", names), row, names)


def value_document(
    given: TableOptions, use: FormatUse, schema: TableSchema, keys: tuple[str, ...]
) -> FormatSpec:
    """Returns the value document: the physical columns in the order of the table, all of them or all except `keys`.

    Raises OptionError, with Flink's message, for a key prefix in combination with 'ALL'.
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
        schema.row(names, key_is_required=use.declared.has_nullability),
        names,
        _format_metadata(use, schema),
    )


def refuse_unfit_documents(topic: Topic) -> None:
    """Raises what the decoder and the encoder of the key or the value would raise for their schema and options.

    Thus errors are reported when the pipeline file is loaded, even if the broker is down."""
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
    """Returns the options of the format: secret ones as `Secret`, and for a registry the default subject of the topic.

    This is the subject under which Flink writes; with several topics there is no default. Raises OptionError for
    several columns with a format of one column, and what `registry_settings` raises.
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
    """Returns the metadata of the format that columns of the table use, each key once."""
    types = use.declared.metadata
    keys = dict.fromkeys(c.key.removeprefix("value.") for c in schema.metadata if c.key.startswith("value."))
    return RowType(tuple(RowField(key, types[key]) for key in keys if key in types))


def _check_single_column(use: FormatUse, columns: tuple[str, ...]) -> None:
    name = use.declared.name
    if len(columns) != 1:
        raise OptionError(
            f"'{use.option}' = '{name}': The '{name}' format only supports single physical column. However the defined "
            f"schema contains {len(columns)} of them: [{', '.join(columns)}]. For a key of several columns use another "
            "format; for a value, 'value.fields-include' = 'EXCEPT_KEY' excludes the key columns"
        )

"""Which columns make up the key document and the value document, and under which names."""

from __future__ import annotations

from typing import Any

from bridge.config.registry_settings import registry_settings
from bridge.definition import FormatSpec, Topic
from bridge.errors import DefinitionError, OptionError, UnsupportedError
from bridge.format_rules.check import refuse_unsupported
from bridge.options import UPSERT, FormatUse, TableOptions
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
    """Raise what the decoder and the encoder of the key or the value would, by schema and options: long before they are
    made, as a broker that is down would keep a run from coming that far."""
    for part, spec in (("key", topic.key), ("value", topic.value)):
        if spec is None:
            continue
        try:
            refuse_unsupported(spec.name, spec.row, spec.options)
        except UnsupportedError as error:
            raise UnsupportedError(f"{error} (format of the {part})", error.what) from error
        except DefinitionError as error:
            raise type(error)(f"{error} (format of the {part})") from error


def _options(given: TableOptions, use: FormatUse, part: str, columns: tuple[str, ...]) -> dict[str, Any]:
    """The format's options; those that are secret as `Secret`, a registry's subject named after the topic.

    Flink names it so where it writes; with several topics it has no name. Raises what `registry_settings` does.
    """
    if use.declared.name == "raw":
        _check_raw(use, columns)
    found = {
        key: Secret(value)
        if isinstance(value, str) and (is_secret(key) or use.prefix + key in given.masked)
        else value
        for key, value in given.format_values(use).items()
    }
    if any(option.key == "subject" for option in use.declared.options):
        topics = given.get(TOPIC) or ()
        if len(topics) == 1:
            found.setdefault("subject", f"{topics[0]}-{part}")
        registry_settings(found, use.prefix)
    return found


def _format_metadata(use: FormatUse, schema: TableSchema) -> RowType:
    """What the table's columns want of the format's own metadata, each key once."""
    told = use.declared.metadata
    wanted = dict.fromkeys(
        c.key.removeprefix("value.") for c in schema.metadata if c.key.startswith("value.")
    )
    return RowType(tuple(RowField(key, told[key]) for key in wanted if key in told))


def _check_raw(use: FormatUse, columns: tuple[str, ...]) -> None:
    if len(columns) != 1:
        raise OptionError(
            f"'{use.option}' = 'raw': The 'raw' format only supports single physical column. However the defined "
            f"schema contains {len(columns)} of them: [{', '.join(columns)}]. For a key of several columns use another "
            "format; for a value, 'value.fields-include' = 'EXCEPT_KEY' leaves the key's columns out"
        )

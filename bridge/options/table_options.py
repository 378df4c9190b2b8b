"""The WITH options of one table as typed values, checked against the declared options."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, TypeVar

from bridge.errors import OptionError
from bridge.options.formats import FORMATS, DeclaredFormat, declared_format
from bridge.options.general import CONNECTOR, FORMAT, GENERAL, KEY_FORMAT, VALUE_FORMAT
from bridge.options.model import KAFKA, UPSERT, Option, Support
from bridge.options.properties import PREFIX, check_property
from bridge.options.scan import SCAN
from bridge.options.sink import SINK

T = TypeVar("T")


@dataclass(frozen=True)
class FormatUse:
    """A format in use by a table: `option` names it, and the keys of its options start with `prefix`."""

    option: str
    prefix: str
    declared: DeclaredFormat


@dataclass(frozen=True)
class EffectiveOption:
    """An option with its effective text: the value in WITH or the default; None if there is neither."""

    option: Option[Any]
    text: str | None
    is_set: bool

    @property
    def is_default(self) -> bool:
        """True if the effective value equals the default, whether WITH sets it or not."""
        option = self.option
        if self.text is None or option.default is None:
            return self.text == option.default
        return bool(option.kind.parse(self.text) == option.kind.parse(option.default))


class TableOptions:
    """The options of one table as typed values. The constructor checks each option by itself.

    Raises OptionError for an unknown, misplaced or missing key, for a value of the wrong type, and for a refused
    option unless it is set to its default. No message quotes the value of a key in `masked`.
    """

    def __init__(self, values: Mapping[str, str], masked: Collection[str] = ()) -> None:
        self.values, self.masked = dict(values), frozenset(masked)
        if CONNECTOR.key not in values:
            raise OptionError("'connector' is missing in WITH; set it to 'upsert-kafka' or 'kafka'")
        self.connector = CONNECTOR.parse(values["connector"], "connector" in self.masked)
        self.key_format = self._format(KEY_FORMAT)
        self.value_format = self._format(VALUE_FORMAT)
        self.options = dict(declared(self.connector))
        for use in (self.key_format, self.value_format):
            if use:
                self.options.update(_format_options(use.prefix, use.declared))
        for key in values:
            self._check_key(key)
        self._check_required()
        for effective in self.effective():
            if effective.is_set:
                self._check_value(effective)

    def get(self, option: Option[T]) -> T | None:
        """Returns the value of `option` in WITH, else its default, else None."""
        text = self.values.get(option.key, option.default)
        return None if text is None else option.parse(text, option.key in self.masked)

    def has(self, option: Option[Any]) -> bool:
        """Returns whether WITH sets the option."""
        return option.key in self.values

    def properties(self) -> dict[str, str]:
        """Returns the Kafka client settings without their prefix, in the order of WITH."""
        return {k.removeprefix(PREFIX): v for k, v in self.values.items() if k.startswith(PREFIX)}

    def format_values(self, use: FormatUse) -> dict[str, Any]:
        """Returns the options of a format without prefix, as typed values with defaults; without refused options."""
        values: dict[str, Any] = {}
        for key, option in _format_options(use.prefix, use.declared).items():
            if key.endswith(".*"):
                stem = key[:-1]
                values |= {
                    k.removeprefix(use.prefix): v for k, v in self.values.items() if k.startswith(stem)
                }
            elif option.support is not Support.REFUSED and (value := self.get(option)) is not None:
                values[key.removeprefix(use.prefix)] = value
        return values

    def effective(self) -> Iterator[EffectiveOption]:
        """Yields every declared option, and every key of WITH under a declared prefix, in the order of declaration."""
        for key, option in self.options.items():
            if not key.endswith(".*"):
                yield EffectiveOption(option, self.values.get(key, option.default), key in self.values)
                continue
            for name, text in self.values.items():
                if name.startswith(key[:-1]) and name not in self.options:
                    yield EffectiveOption(option.named(name), text, True)

    def _format(self, option: Option[str]) -> FormatUse | None:
        """Returns the format and its prefix as Flink does: 'x.<name>.' for 'x.format', '<name>.' for 'format'."""
        key = option.key
        if option is VALUE_FORMAT and FORMAT.key in self.values:
            if key in self.values:
                raise OptionError("'format' is an alias of 'value.format'; set only one of them")
            key = FORMAT.key
        if key not in self.values:
            return None
        name = self.values[key]
        if key in self.masked:
            raise OptionError(f"'{key}': the name of a format cannot come from a secret; write it in the DDL")
        stem = "" if key == FORMAT.key else key.removesuffix("format")
        return FormatUse(key, f"{stem}{name}.", declared_format(key, name))

    def _check_key(self, key: str) -> None:
        if key in self.options and not key.endswith(".*"):
            return
        if key.startswith(PREFIX):
            name, text = key.removeprefix(PREFIX), self.values[key]
            check_property(self.connector, name, text, key in self.masked)
        elif key.endswith(".*") or not self._declares(key):
            prefixes: dict[str, str] = {}
            for use in filter(None, (self.key_format, self.value_format)):
                prefixes[use.declared.name] = use.prefix
            raise OptionError(_unknown_key(self.connector, key, self.options, prefixes))

    def _declares(self, key: str) -> bool:
        return key in self.options or any(
            k.endswith(".*") and key.startswith(k[:-1]) and key != k[:-1] for k in self.options
        )

    def _check_required(self) -> None:
        missing = [
            key
            for key, option in self.options.items()
            if option.required
            and key not in self.values
            and not (key == VALUE_FORMAT.key and self.value_format)
        ]
        if missing:
            raise OptionError(
                f"connector '{self.connector}' requires {', '.join(repr(k) for k in missing)}; set "
                f"{'it' if len(missing) == 1 else 'them'} in WITH"
            )

    def _check_value(self, effective: EffectiveOption) -> None:
        option = effective.option
        option.parse(self.values[option.key], option.key in self.masked)
        if option.support is Support.REFUSED and not effective.is_default:
            raise OptionError(f"'{option.key}' is refused: {option.reason}")


_PUBLIC_SASL = ("sasl.mechanism", "sasl.kerberos.service.name")
_SECRET = re.compile(
    r"password|passphrase|secret|token|credential|jaas|user[.-]info|private|(^|[.-])key$|certificate"
)


def is_secret(key: str) -> bool:
    """Returns True if the value of this WITH key or client setting must never be shown."""
    name = key.removeprefix(PREFIX)
    if name.startswith("sasl."):
        return name not in _PUBLIC_SASL
    return bool(_SECRET.search(name.lower()))


OPTIONS: tuple[Option[Any], ...] = (*GENERAL, *SCAN, *SINK)
"""Every option of the connectors, in the order of docs/options.md. A key may appear once per connector."""

_BY_CONNECTOR = {
    name: MappingProxyType({o.key: o for o in OPTIONS if name in o.connectors}) for name in (UPSERT, KAFKA)
}


def declared(connector: str) -> Mapping[str, Option[Any]]:
    """Returns the options of a connector by key, including declared prefixes (`properties.*`)."""
    return _BY_CONNECTOR[connector]


def _format_options(prefix: str, declared_format: DeclaredFormat) -> dict[str, Option[Any]]:
    """Returns the options of a format by their keys in WITH, which start with `prefix` ('value.json.')."""
    return {prefix + option.key: option.named(prefix + option.key) for option in declared_format.options}


def _unknown_key(
    connector: str, key: str, legal: Mapping[str, Option[Any]], prefixes: Mapping[str, str]
) -> str:
    """Explains why `key` is not legal and suggests a key. `prefixes` maps each format in use to its prefix."""
    other = KAFKA if connector == UPSERT else UPSERT
    if key in declared(other):
        hint = f"; with '{connector}' the PRIMARY KEY is the key" if key == "key.fields" else "; remove it"
        return f"'{key}' is an option of connector '{other}', not of '{connector}'{hint}"
    owner = _format_of(key)
    if owner:
        format_name, rest = owner
        if format_name in prefixes:
            return f"'{key}' has the wrong prefix for this table: write '{prefixes[format_name]}{rest}'"
        return f"'{key}' is an option of format '{format_name}', which this table does not use; remove it"
    near = get_close_matches(key.lower(), [k for k in legal if not k.endswith(".*")], 1, 0.6)
    hint = f"did you mean '{near[0]}'?" if near else f"the options are {', '.join(sorted(legal))}"
    return f"'{key}' is not an option of connector '{connector}'; {hint}"


def _format_of(key: str) -> tuple[str, str] | None:
    """Returns (format, option) if `key` is an option of a known format under any prefix."""
    bare = key.removeprefix("key.").removeprefix("value.")
    for name in sorted(FORMATS, key=len, reverse=True):
        rest = bare.removeprefix(f"{name}.")
        if rest != bare and any(rest == option.key for option in FORMATS[name].options):
            return name, rest
    return None

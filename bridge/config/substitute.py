"""Substitutes `${env:X}`, `${env:X:default}`, `${file:path}` and `${secret:scope/key}`; `$${` escapes `${`."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from bridge.config.paths import resolved_path
from bridge.errors import DefinitionError
from bridge.secret import Secret
from bridge.user_files import location_of, read_text

Secrets = Callable[[str, str], str]
"""Looks up (scope, key); raises LookupError with a message if it does not exist."""

_given: ContextVar[Mapping[str, str] | None] = ContextVar(
    "values in place of environment variables", default=None
)

_REFERENCE = re.compile(r"(\$?)\$\{([^{}]*)\}?")
_LEGAL = "${env:NAME}, ${env:NAME:default}, ${file:path}, ${secret:scope/key}; write $${ for a literal ${"


@contextmanager
def given_values(values: Mapping[str, str]) -> Iterator[None]:
    """Within the block, `values` count as environment variables for references, and go before those of the process."""
    before = _given.set(values)
    try:
        yield
    finally:
        _given.reset(before)


def environment() -> Mapping[str, str]:
    """Returns the environment variables of the process, with those of `given_values` before them."""
    return {**os.environ, **(_given.get() or {})}


def databricks_secret(scope: str, key: str) -> str:
    """Returns a value of a Databricks secret scope. Raises LookupError if it does not exist or outside Databricks."""
    try:
        utils = importlib.import_module("databricks.sdk.runtime").dbutils
    except Exception as error:
        raise LookupError(
            "dbutils of Databricks is not available; run on Databricks, or use ${env:...} or ${file:...}"
        ) from error
    try:
        return str(utils.secrets.get(scope=scope, key=key))
    except Exception as error:
        raise LookupError(
            f"Databricks refused the request ({type(error).__name__}); check the scope, the key and its permissions"
        ) from None


@dataclass(frozen=True)
class Substitution:
    """The sources of references: environment variables, files relative to `base`, and secret scopes."""

    environ: Mapping[str, str]
    base: str
    secrets: Secrets = field(default=databricks_secret)

    def __call__(self, text: str, where: str) -> str:
        """Returns `text` with all references substituted; a `Secret` if any part comes from a file or secret scope.

        Raises DefinitionError that starts with `where` and names the reference, never its value.
        """
        masked = False
        parts: list[str] = []
        end = 0
        for match in _REFERENCE.finditer(text):
            parts.append(text[end : match.start()])
            end = match.end()
            if match[1]:
                parts.append(match[0][1:])
                continue
            if not match[0].endswith("}"):
                raise DefinitionError(f"{where}: a '${{' has no closing '}}'. Legal references are {_LEGAL}")
            value = self._value(match[2], where)
            masked = masked or isinstance(value, Secret)
            parts.append(value.reveal() if isinstance(value, Secret) else value)
        substituted = "".join(parts) + text[end:]
        return Secret(substituted) if masked else substituted

    def _value(self, reference: str, where: str) -> str:
        kind, _, name = reference.partition(":")
        if kind == "env" and name:
            return self._variable(name, where)
        if kind == "file" and name:
            return Secret(self._file(name, where))
        scope, _, key = name.partition("/")
        if kind == "secret" and scope and key:
            try:
                return Secret(self.secrets(scope, key))
            except LookupError as error:
                raise DefinitionError(f"{where}: ${{{reference}}}: {error}") from None
        raise DefinitionError(
            f"{where}: ${{{reference}}} is not a legal reference. Legal references are {_LEGAL}"
        )

    def _variable(self, reference: str, where: str) -> str:
        name, colon, default = reference.partition(":")
        if name in self.environ:
            return self.environ[name]
        if not colon:
            raise DefinitionError(
                f"{where}: the environment variable {name} is not set; set it, give --env {name}=..., or add a "
                f"default: ${{env:{name}:...}}"
            )
        return default

    def _file(self, name: str, where: str) -> str:
        try:
            text = read_text(location_of(resolved_path(self.base, name)))
        except OSError as error:
            raise DefinitionError(f"{where}: ${{file:{name}}} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise DefinitionError(f"{where}: ${{file:{name}}} is not UTF-8 text") from None
        return text.removesuffix("\n").removesuffix("\r")

"""`${env:X}`, `${env:X:default}`, `${file:path}`, `${secret:scope/key}` in a value; `$${` is `${`."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bridge.errors import DefinitionError
from bridge.secret import Secret

__all__ = ["Secrets", "Substitution", "databricks_secret"]

Secrets = Callable[[str, str], str]
"""Looks up (scope, key); raises LookupError with a message when there is none."""

_REFERENCE = re.compile(r"(\$?)\$\{([^{}]*)\}?")
_LEGAL = "${env:NAME}, ${env:NAME:default}, ${file:path}, ${secret:scope/key}; write $${ for a plain ${"


def databricks_secret(scope: str, key: str) -> str:
    """A value of a Databricks secret scope. Raises LookupError elsewhere, and where it does not exist."""
    try:
        utils = importlib.import_module("databricks.sdk.runtime").dbutils
    except Exception as error:
        raise LookupError(
            "Databricks' dbutils is not here: run on Databricks, or use ${env:...} or ${file:...}"
        ) from error
    try:
        return str(utils.secrets.get(scope=scope, key=key))
    except Exception as error:
        raise LookupError(f"Databricks refuses it ({type(error).__name__})") from None


@dataclass(frozen=True)
class Substitution:
    """Where values come from: environment, files relative to `base`, secret scopes."""

    environ: Mapping[str, str]
    base: Path
    secrets: Secrets = field(default=databricks_secret)

    def __call__(self, text: str, where: str) -> str:
        """`text` with every reference replaced; a `Secret` when a file or secret scope gave any part of it.

        Raises DefinitionError that begins with `where` and names the reference, never what it stands for.
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
                raise DefinitionError(f"{where}: a '${{' is not closed. Legal are {_LEGAL}")
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
        raise DefinitionError(f"{where}: ${{{reference}}} cannot be substituted. Legal are {_LEGAL}")

    def _variable(self, reference: str, where: str) -> str:
        name, colon, default = reference.partition(":")
        if name in self.environ:
            return self.environ[name]
        if not colon:
            raise DefinitionError(
                f"{where}: the environment variable {name} is not set; set it, or give a default: "
                f"${{env:{name}:...}}"
            )
        return default

    def _file(self, name: str, where: str) -> str:
        try:
            text = (self.base / name).read_text(encoding="utf-8")
        except OSError as error:
            raise DefinitionError(f"{where}: ${{file:{name}}} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise DefinitionError(f"{where}: ${{file:{name}}} is not UTF-8 text") from None
        return text.removesuffix("\n").removesuffix("\r")

"""References of a job, `${secret_values.NAME}` and `${NAME}`, as references of the bridge.

On Flink's platforms both are variables that are kept beside the job, the first ones as secrets. Here `${NAME}` is the
environment variable of that name in capitals, other characters than letters and digits as `_`:
`${upsert.kafka.topic}` is `${env:UPSERT_KAFKA_TOPIC}`. `${secret_values.NAME}` is read the same way but never shown;
where there is no such variable, it is the key NAME of the Databricks secret scope `secret_values`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from bridge.config.substitute import Secrets, Substitution, databricks_secret, environment
from bridge.errors import DefinitionError
from bridge.secret import Secret

SECRET_SCOPE = "secret_values"
LEGAL = "${env:NAME}, ${env:NAME:default}, ${file:path}, ${secret:scope/key}; write $${ for a literal ${"
_REFERENCE = re.compile(r"(\$?)\$\{([^{}:]*)\}")


@dataclass(frozen=True)
class References:
    """Where the values of references come from; paths are relative to `base`."""

    base: str
    environ: Mapping[str, str] = field(default_factory=environment)
    other_secrets: Secrets = databricks_secret

    def translated(self, text: str, where: str) -> str:
        """Returns `text` with the bridge's references only. Raises DefinitionError, with `where` before it, for a
        variable that is not set."""

        def reference(match: re.Match[str]) -> str:
            name = match[2].strip()
            if match[1] or not name:
                return match[0]
            if name.startswith(f"{SECRET_SCOPE}."):
                return f"${{secret:{SECRET_SCOPE}/{name.removeprefix(f'{SECRET_SCOPE}.')}}}"
            if variable(name) not in self.environ:
                raise DefinitionError(
                    f"{where}: ${{{name}}} is the environment variable {variable(name)}, which is not set; set it, "
                    f"give --env {variable(name)}=..., or write one of {LEGAL}"
                )
            return f"${{env:{variable(name)}}}"

        return _REFERENCE.sub(reference, text)

    def value(self, text: str, where: str) -> str:
        """Returns `text` with all references substituted, a `Secret` if a part of it is one. Raises DefinitionError."""
        return Substitution(self.environ, self.base, self.secrets)(self.translated(text, where), where)

    def shown(self, text: str, where: str) -> str:
        """Returns the same for a value that reports show. Raises DefinitionError for a secret, too."""
        value = self.value(text, where) if "${" in text else text
        if isinstance(value, Secret):
            raise DefinitionError(
                f"{where}: secrets and ${{file:...}} are allowed in the options of source and sink only, because "
                "reports show this value. Use ${env:...}"
            )
        return value

    def secrets(self, scope: str, key: str) -> str:
        """Looks up a secret. Raises LookupError with a message if it does not exist."""
        if scope != SECRET_SCOPE:
            return self.other_secrets(scope, key)
        if variable(key) in self.environ:
            return self.environ[variable(key)]
        try:
            return self.other_secrets(scope, key)
        except LookupError as error:
            raise LookupError(
                f"${{{SECRET_SCOPE}.{key}}} is the environment variable {variable(key)}, which is not set, or a secret "
                f"of Databricks: {error}. Or write one of {LEGAL}"
            ) from None


def variable(name: str) -> str:
    """Returns the environment variable of a reference."""
    return re.sub(r"[^A-Za-z0-9]", "_", name).upper()

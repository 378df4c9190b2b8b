"""Strings that must not be shown."""

from __future__ import annotations


class Secret(str):
    """A string whose text is `******` in every repr, log and error message; `reveal()` returns the secret."""

    def __new__(cls, value: str) -> Secret:
        secret = super().__new__(cls, "******")
        secret._value = value
        return secret

    _value: str

    def reveal(self) -> str:
        """Returns the secret. For client configurations only, never for messages."""
        return self._value

    def __reduce__(self) -> tuple[type[Secret], tuple[str]]:
        return (Secret, (self._value,))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __ne__(self, other: object) -> bool:  # str.__ne__ would compare the masks
        return not self == other

    def __hash__(self) -> int:
        return hash(self._value)

"""What a pipeline file holds that nobody may see."""

from __future__ import annotations

__all__ = ["Secret"]


class Secret(str):
    """A string that shows itself as `******` in every repr, log and error; `reveal()` gives the text."""

    def __new__(cls, value: str) -> Secret:
        secret = super().__new__(cls, "******")
        secret._value = value
        return secret

    _value: str

    def reveal(self) -> str:
        """The text itself. For client configurations only; never for a message."""
        return self._value

    def __reduce__(self) -> tuple[type[Secret], tuple[str]]:
        return (Secret, (self._value,))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __ne__(self, other: object) -> bool:  # str has one of its own, which would compare the masks
        return not self == other

    def __hash__(self) -> int:
        return hash(self._value)

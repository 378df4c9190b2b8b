"""Objects of Spark that offer their public API alone, as a Spark that is closed to Python does."""

from __future__ import annotations

from typing import Any


class PublicApi:
    """What `real` offers, without attributes whose names begin with an underscore.

    Each object of Spark or Delta that it returns is such an object, too."""

    def __init__(self, real: Any) -> None:
        self.__dict__["real"] = real

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # what isinstance asks
        return type(self.__dict__["real"])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"[ATTRIBUTE_NOT_SUPPORTED] {name}")
        found = getattr(self.real, name)
        if not callable(found):
            return _public(found)
        return lambda *arguments, **options: _public(found(*arguments, **options))


def _public(found: Any) -> Any:
    return PublicApi(found) if type(found).__module__.startswith(("pyspark.sql.", "delta.")) else found

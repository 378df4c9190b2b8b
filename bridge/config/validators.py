"""Base classes of the sections of the pipeline file, and validators of their values.

Sections have strict types, kebab-case keys, and tables by path or by name. Validators raise ValueError with the legal
values.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from bridge.history_columns import AppendHistory, History
from bridge.metrics.prometheus import parsed
from bridge.options.kinds import duration_ms, size_bytes


def check_trigger(text: str) -> str:
    """Accepts `available-now` and intervals with a unit."""
    if text != "available-now":
        if text.strip().isdigit():
            raise ValueError("it has no unit; legal values are available-now and intervals like '10 s'")
        if not _duration(text):
            raise ValueError("not legal; legal values are available-now and intervals like '10 s'")
    return text


def check_interval(text: str) -> str:
    """Accepts durations with a unit, except for 0."""
    if not _duration(text):
        raise ValueError("not legal; legal values are intervals with a unit, like '1 d' or '6 h'")
    return text


def check_retention(text: str) -> str:
    """Accepts durations with a unit, including 0."""
    if _duration(text) is None:
        raise ValueError("not legal; legal values are durations with a unit, like '7 d' or '36 h'")
    return text


def check_step_timeout(text: str) -> str:
    """Accepts durations with a unit, including 0, which is no bound."""
    if _duration(text) is None:
        raise ValueError(
            "not legal; legal values are durations with a unit, like '10 min', and '0 s' for no bound"
        )
    return text


def check_metrics(text: str) -> str:
    """Accepts what `prometheus.parsed` does."""
    parsed(text)
    return text


def _duration(text: str) -> int | None:
    """Returns the milliseconds of a duration with a unit, and None for any other text."""
    try:
        return None if text.strip().isdigit() else duration_ms(text)
    except ValueError:
        return None


def check_cluster_columns(columns: list[str]) -> list[str]:
    """Accepts 1 to 4 different columns, as Delta's CLUSTER BY does."""
    if not 1 <= len(columns) <= 4 or len({name.lower() for name in columns}) < len(columns):
        raise ValueError("not legal; legal values are 1 to 4 different columns")
    return columns


def check_own_columns(value: Any) -> Any:
    """Accepts `all`, and lists of different columns, except for the empty one."""
    names = value if isinstance(value, list) and all(isinstance(name, str) for name in value) else []
    if value != "all" and (not names or len({name.lower() for name in names}) < len(names)):
        raise ValueError("not legal; legal values are all and lists of different columns")
    return value


def check_sequence(value: Any) -> Any:
    """Accepts names, and lists of different names, except for the empty one."""
    names = value if isinstance(value, list) else [value]
    texts = [name for name in names if isinstance(name, str) and name]
    if not texts or len(set(texts)) < len(names):
        raise ValueError("not legal; legal values are position, a column and lists of different columns")
    return value


_HISTORIES: dict[str, tuple[tuple[str, ...], str]] = {
    "scd2": (History().columns, "three different names, like [valid_from, valid_to, is_current]"),
    "bitemporal": (
        History.bitemporal().columns,
        "five different names, like [valid_from, valid_to, is_current, known_from, known_to]",
    ),
    "append": (AppendHistory().columns, "five different names, like [kind, topic, part, pos, num]"),
}
"""The default names of the columns of each `delta.history`, and the legal values in words."""


def check_history_columns(names: list[str], history: str) -> None:
    """Accepts as many different names as `history` has; with two underscores at its beginning only a default."""
    defaults, wanted = _HISTORIES[history]
    legal = [name for name in names if re.fullmatch(r"(?!__)[A-Za-z_]\w*", name) or name in defaults]
    if not len({name.lower() for name in legal}) == len(names) == len(defaults):
        raise ValueError(
            f"history-columns is not legal; legal values are lists of {wanted}, of letters, digits and underscores, "
            "which do not begin with two of these"
        )


def check_ignored_nulls(value: Any) -> Any:
    """Accepts true, false, and lists of different names, except for the empty one."""
    names = value if isinstance(value, list) and all(isinstance(name, str) for name in value) else []
    if not isinstance(value, bool) and (not names or len(set(names)) < len(names)):
        raise ValueError("not legal; legal values are true, false and lists of different columns")
    return value


def check_size(text: str) -> str:
    """Accepts sizes with a unit."""
    try:
        size_bytes(text)
    except ValueError:
        raise ValueError("not legal; legal values are sizes with a unit, like '256 mb' or '1 gb'") from None
    return text


def check_engine(text: object) -> object:
    """Refuses the engines that `driver` has replaced."""
    if text in ("delta-rs", "deletion-vectors"):
        raise ValueError(
            f"{text} is part of the engine driver now, which marks rows where the table has deletion vectors and "
            "copies files elsewhere; legal values are auto, spark, driver"
        )
    return text


def check_publish_start(text: str) -> str:
    """Accepts the start positions of a publish."""
    mode, _, value = text.partition(":")
    if text in ("snapshot", "latest") or (mode == "version" and value.isdigit()):
        return text
    if mode == "timestamp":
        try:
            datetime.fromisoformat(re.sub("[zZ]$", "+00:00", value))
            return text
        except ValueError:
            pass
    raise ValueError(
        "not legal; legal values are snapshot, latest, version:N, timestamp:2024-12-31T23:59:59Z"
    )


def off_as_text(value: Any) -> Any:
    """Converts false to `off`, since YAML parses an unquoted off as false."""
    return "off" if value is False else value


def digits_as_int(value: Any) -> Any:
    """Converts digits, for example from a substitution, to a number."""
    return int(value) if isinstance(value, str) and value.isdecimal() else value


def scalars_as_text(value: Any) -> Any:
    """Converts booleans and numbers in a mapping to text, since properties of tables and topics are text."""
    if not isinstance(value, dict):
        return value
    return {
        k: str(v).lower() if isinstance(v, bool) else str(v) if isinstance(v, int | float) else v
        for k, v in value.items()
    }


def kebab(name: str) -> str:
    return name.replace("_", "-")


Properties = Annotated[dict[str, str], BeforeValidator(scalars_as_text)]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, alias_generator=kebab)


TABLE_NAME = r"^[^.\s`]+(\.[^.\s`]+){0,2}$"
"""[[catalog.]schema.]table"""


def check_state(text: str) -> str:
    """Accepts a path or URI, which has a slash, and the name of a table."""
    if "/" not in text and re.match(TABLE_NAME, text) is None:
        raise ValueError(
            "not legal; legal forms are table, schema.table and catalog.schema.table, and a path or URI with a slash"
        )
    return text


class TableLocation(Section):
    path: str | None = Field(default=None, min_length=1, description="Folder or URI of the table.")
    table: str | None = Field(default=None, pattern=TABLE_NAME, description="Name of the table.")

    @model_validator(mode="after")
    def _path_or_table(self) -> TableLocation:
        if (self.path is None) == (self.table is None):
            raise ValueError("exactly one of path and table must be set")
        return self

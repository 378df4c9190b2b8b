"""Base classes of the sections of the pipeline file: strict types, kebab-case keys, tables by path or by name."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from bridge.config import validators


def kebab(name: str) -> str:
    return name.replace("_", "-")


Properties = Annotated[dict[str, str], BeforeValidator(validators.scalars_as_text)]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, alias_generator=kebab)


TABLE_NAME = r"^[^.\s`]+(\.[^.\s`]+){0,2}$"
"""[[catalog.]schema.]table"""


class TableLocation(Section):
    path: str | None = Field(default=None, min_length=1, description="Folder or URI of the table.")
    table: str | None = Field(default=None, pattern=TABLE_NAME, description="Name of the table.")

    @model_validator(mode="after")
    def _path_or_table(self) -> TableLocation:
        if (self.path is None) == (self.table is None):
            raise ValueError("exactly one of path and table must be set")
        return self

"""The `quality` section of the pipeline file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from bridge.config import validators
from bridge.config.validators import Section, TableLocation


class ResultsSection(TableLocation):
    """The Delta table for the results of checks: exactly one of `path` and `table`."""


_GateAction = Annotated[Literal["off", "warn", "quarantine", "fail"], BeforeValidator(validators.off_as_text)]


class QualitySection(Section):
    """The quality suite of the table and what its checks do."""

    suite: str = Field(min_length=1, description="Great Expectations suite (JSON).")
    on_failure: Literal["fail", "quarantine", "warn"] = Field(
        default="fail",
        description="What `bridge check` does if the suite fails: fail ends with exit code 3, warn prints a warning.",
    )
    report: str | None = Field(
        default=None,
        min_length=1,
        description="File to which the HTML report is written, also on an object store.",
    )
    results: ResultsSection | None = Field(
        default=None,
        description="Table for the results of all checks; default: the name or path of the table with the suffix "
        "`_quality`.",
    )
    gate: _GateAction = Field(
        default="off",
        description="What happens when rows of a batch break the rules of the suite, before the batch is written or "
        "sent: fail stops the run, quarantine diverts the rows (ingest only), warn counts them.",
    )
    gate_suite: str | None = Field(
        default=None,
        min_length=1,
        description="A separate suite for the gate; default: the rules of `suite` that a gate supports.",
    )

    @model_validator(mode="after")
    def _gate_has_suite(self) -> QualitySection:
        if self.gate == "off" and self.gate_suite is not None:
            raise ValueError("gate-suite has no effect with gate: off; set gate to warn, quarantine or fail")
        return self

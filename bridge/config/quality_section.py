"""The `quality` section of the pipeline file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from bridge.config import validators
from bridge.config.section import Section, TableLocation

__all__ = ["QualitySection", "ResultsSection"]


class ResultsSection(TableLocation):
    """A Delta table of what checks have found, by path or by name. Exactly one of the two."""


_GateAction = Annotated[Literal["off", "warn", "quarantine", "fail"], BeforeValidator(validators.off_as_text)]


class QualitySection(Section):
    """Expectations on the table."""

    suite: str = Field(min_length=1, description="Great Expectations suite (JSON).")
    on_failure: Literal["fail", "quarantine", "warn"] = Field(
        default="fail", description="What a failed suite does."
    )
    report: str | None = Field(default=None, min_length=1, description="Where the HTML report is written.")
    results: ResultsSection | None = Field(
        default=None,
        description="Where the results of all checks are kept; default: `_quality` beside the table.",
    )
    gate: _GateAction = Field(
        default="off",
        description="What happens when rows of a batch break the rules of the suite, before the batch is written or "
        "sent: fail stops the run, quarantine diverts the rows (ingest only), warn counts them.",
    )
    gate_suite: str | None = Field(
        default=None,
        min_length=1,
        description="A suite for the gate alone; default: what it can judge of `suite`.",
    )

    @model_validator(mode="after")
    def _gate_has_suite(self) -> QualitySection:
        if self.gate == "off" and self.gate_suite is not None:
            raise ValueError("gate-suite has no effect with gate: off; set gate to warn, quarantine or fail")
        return self

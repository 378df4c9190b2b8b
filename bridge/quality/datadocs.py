"""Adds runs to Great Expectations' Data Docs, a static site that it builds in a folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from bridge.errors import BridgeError
from bridge.quality.gx import quiet
from bridge.quality.suite import Suite
from bridge.quality.verdict import Outcome, Verdict

_STORES_FOLDER = ".gx"


def data_docs(folder: Path, suite: Suite, verdict: Verdict) -> Path:
    """Adds the run to the site in `folder`, builds the site and returns its start page. Creates a missing folder.

    Earlier runs stay in the site: Great Expectations' stores are in `.gx` beside the pages. Results contain counts and
    observed aggregates, no values of rows. Building needs no network, but the pages of Great Expectations load scripts
    from the web when they are opened. Raises BridgeError when the folder cannot be written to.
    """
    with quiet():
        import great_expectations as gx
        from great_expectations.core import ExpectationSuite, ExpectationSuiteValidationResult
        from great_expectations.core.run_identifier import RunIdentifier
        from great_expectations.data_context.types.resource_identifiers import (
            ExpectationSuiteIdentifier,
            ValidationResultIdentifier,
        )

        subject = verdict.subject
        run = RunIdentifier(run_name=subject.run or None, run_time=verdict.started_at)
        met = len(verdict.expectations) - len(verdict.failed)
        result = ExpectationSuiteValidationResult(
            success=verdict.success,
            results=[_result(e, o) for e, o in zip(suite.expectations, verdict.expectations, strict=True)],
            suite_name=suite.name,
            statistics={
                "evaluated_expectations": len(suite),
                "successful_expectations": met,
                "unsuccessful_expectations": len(suite) - met,
                "success_percent": 100 * met / len(suite),
            },
            meta={
                "run_id": run,
                "batch_markers": {},
                "active_batch_definition": {
                    "datasource_name": "bridge",
                    "data_connector_name": subject.pipeline,
                    "data_asset_name": subject.table,
                    "batch_identifiers": {"version": subject.version},
                },
            },
        )
        batch = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{subject.table}-version-{subject.version}").strip("-")
        key = ValidationResultIdentifier(ExpectationSuiteIdentifier(suite.name), run, batch)
        try:
            context = gx.get_context(mode="ephemeral", project_config=_project_config(folder))
            expectations = [e.configuration.to_domain_obj() for e in suite.expectations]
            context.suites.add_or_update(ExpectationSuite(name=suite.name, expectations=expectations))
            context.validation_results_store.set(key, result)
            context.build_data_docs()
        except OSError as e:
            raise BridgeError(f"{folder}: Data Docs cannot be written: {e.strerror}") from e
    return folder / "index.html"


def _result(expectation: Any, outcome: Outcome) -> Any:
    from great_expectations.core import ExpectationValidationResult

    result: dict[str, Any] = {}
    if outcome.unexpected_count is not None:
        percent = outcome.unexpected_percent or 0.0
        counts = {"unexpected_count": outcome.unexpected_count, "unexpected_percent": percent}
        result = {**counts, "partial_unexpected_list": []}
    if outcome.observed:
        result["observed_value"] = outcome.observed
    raised = outcome.reason is not None
    return ExpectationValidationResult(
        success=outcome.success,
        expectation_config=expectation.configuration,
        result=result,
        exception_info={
            "raised_exception": raised,
            "exception_message": outcome.reason,
            "exception_traceback": outcome.reason,
        },
    )


def _project_config(folder: Path) -> Any:
    from great_expectations.data_context.types.base import DataContextConfig

    def store(kind: str, subfolder: str | None) -> dict[str, Any]:
        if subfolder is None:
            return {"class_name": kind, "store_backend": {"class_name": "InMemoryStoreBackend"}}
        return {"class_name": kind, "store_backend": _files(folder / _STORES_FOLDER / subfolder)}

    return DataContextConfig(
        config_version=4.0,
        stores={
            "expectations": store("ExpectationsStore", "expectations"),
            "results": store("ValidationResultsStore", "results"),
            "checkpoints": store("CheckpointStore", None),
            "validation_definition_store": store("ValidationDefinitionStore", None),
        },
        expectations_store_name="expectations",
        validation_results_store_name="results",
        checkpoint_store_name="checkpoints",
        data_docs_sites={
            "site": {
                "class_name": "SiteBuilder",
                "show_how_to_buttons": False,
                "store_backend": _files(folder),
                "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
            }
        },
        analytics_enabled=False,
    )


def _files(folder: Path) -> dict[str, str]:
    return {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(folder.absolute())}

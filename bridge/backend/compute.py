"""Which compute runs which verb: the table of docs/databricks.md, from what backends say that they cannot.

Tests compare the page with it, the verbs with those of the command line, and the tests that it names with those that
there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from bridge.backend.connect import REFUSED, SERVERLESS
from bridge.backend.contract import Feature


class Shown(Enum):
    """What shows that a compute runs a verb; the value says it in a sentence."""

    RUN = "tests run it on this compute"
    EMULATED = "tests run it on a Spark that is reached in the same way, and not on Databricks"
    DOCUMENTED = "it follows from the documentation of Spark or Databricks; no test runs it"
    REFUSED = "not possible, as said below"


@dataclass(frozen=True)
class Compute:
    """A place where Spark runs."""

    title: str
    refused: Mapping[Feature, str]
    """What its backend's `can` says."""
    tests: str
    """Which tests of a `Use` show that this compute runs it, by the name of their field."""
    ours: bool
    """The tests of this project start it."""


@dataclass(frozen=True)
class Use:
    """A verb with some options, the features without which it is refused, and a test of it for each way to Spark."""

    verb: str
    options: str = ""
    needs: tuple[Feature, ...] = ()
    classic: str | None = None
    connect: str | None = None
    serverless: str | None = None

    def shown(self, compute: Compute) -> Shown:
        """What shows that the compute runs it; REFUSED where it cannot."""
        if set(self.needs) & set(compute.refused):
            return Shown.REFUSED
        if getattr(self, compute.tests) is None:
            return Shown.DOCUMENTED
        return Shown.RUN if compute.ours else Shown.EMULATED


COMPUTES = (
    Compute("Spark of your own", {}, "classic", ours=True),
    Compute("Spark Connect", REFUSED, "connect", ours=True),
    Compute("Databricks, dedicated", {}, "classic", ours=False),
    Compute("Databricks, standard", REFUSED, "connect", ours=False),
    Compute("Databricks, serverless", SERVERLESS, "serverless", ours=False),
)

_TRIP = "tests/backend/test_connect_server.py::test_a_round_trip_by_commands"
_CLIENT = "tests/backend/through_connect.py"
_TRIP_SERVERLESS = "tests/backend/test_connect_serverless.py::test_a_round_trip_by_commands"
_SERVERLESS = "tests/backend/through_serverless.py"
_INGEST, _OPERATIONS = "tests/pipelines/ingest", "tests/pipelines/operations"

USES = (
    Use(
        "`ingest`",
        "`reader: auto`",
        (),
        f"{_INGEST}/test_run.py",
        f"{_CLIENT}::test_ranges_are_read_between_chosen_offsets",
        f"{_SERVERLESS}::test_topic_to_table",
    ),
    Use(
        "`ingest`",
        "`reader: consumer`",
        (Feature.KAFKA_IN_TASKS,),
        f"{_INGEST}/test_run.py",
        f"{_CLIENT}::test_ranges_are_read_between_chosen_offsets",
    ),
    Use(
        "`ingest`",
        "`reader: spark`",
        (),
        f"{_INGEST}/test_run.py",
        f"{_CLIENT}::test_ranges_are_read_between_chosen_offsets",
        f"{_SERVERLESS}::test_topic_to_table",
    ),
    Use(
        "`ingest`",
        "`--once`",
        (),
        f"{_INGEST}/test_once.py",
        f"{_CLIENT}::test_rows_from_elsewhere_get_their_intervals",
    ),
    Use(
        "`ingest`",
        "`bad-records: quarantine`",
        (),
        f"{_INGEST}/test_replay.py",
        f"{_CLIENT}::test_a_corrected_record_is_replayed",
    ),
    Use("`publish`", "at-least-once", (), "tests/pipelines/publish/test_run.py", _TRIP, _TRIP_SERVERLESS),
    Use(
        "`publish`",
        "exactly-once",
        (),
        "tests/pipelines/publish/test_run_exactly_once.py",
        _TRIP,
        _TRIP_SERVERLESS,
    ),
    Use("`check`", "", (), "tests/pipelines/quality/test_check.py", _TRIP, _TRIP_SERVERLESS),
    Use("`check`", "cost of the scans", (Feature.METRICS,), "tests/quality/test_scan_cost.py"),
    Use("`verify`", "", (), "tests/pipelines/compare/test_verify.py", _TRIP, _TRIP_SERVERLESS),
    Use("`replay`", "", (), f"{_INGEST}/test_replay.py", f"{_CLIENT}::test_a_corrected_record_is_replayed"),
    Use("`resync`", "of a table", (Feature.SETTINGS,), "tests/pipelines/resync/test_topic_to_table.py"),
    Use("`resync`", "of a topic", (Feature.WORKING_FILES,), "tests/pipelines/resync/test_table_to_topic.py"),
    Use("`run`", "scripts, jobs of Flink CDC", (Feature.PERSIST,), "tests/cli/test_app_scripts.py"),
    Use("`status`", "", (), "tests/cli/test_ops_commands.py", _TRIP, _TRIP_SERVERLESS),
    Use("`doctor`", "", (), f"{_OPERATIONS}/test_doctor.py", _TRIP, _TRIP_SERVERLESS),
    Use("`maintain`", "", (), f"{_OPERATIONS}/test_maintain.py", _TRIP, _TRIP_SERVERLESS),
    Use("`txn list`, `txn abort`", "", (Feature.TRANSACTIONS,), "tests/cli/test_kafka_commands.py"),
    Use(
        "all of these",
        "`run.state`",
        (),
        "tests/delta/test_table_state.py",
        "tests/delta/test_table_state.py",
        _TRIP_SERVERLESS,
    ),
)

WITHOUT_SPARK = frozenset({"validate", "schema", "peek", "topics", "broker", "top", "report", "demo"})
"""Verbs that run without one of these computes, or that start all they need."""


def table() -> list[str]:
    """The lines of the table in docs/databricks.md, in the order of `USES`."""
    titles = [compute.title for compute in COMPUTES]
    rows = [[use.verb, use.options] + [_cell(use.shown(compute)) for compute in COMPUTES] for use in USES]
    return [_line(["Verb", "Option", *titles]), _line(["---"] * (2 + len(titles))), *map(_line, rows)]


def legend() -> list[str]:
    """A line of the page for each word of the table."""
    return [f"- {_cell(shown)}: {shown.value}" for shown in Shown]


def _cell(shown: Shown) -> str:
    return "no" if shown is Shown.REFUSED else shown.name.lower()


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"

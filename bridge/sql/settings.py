"""The keys of SET: what each one means, or why it is refused."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from bridge.ddl.tokens import Source
from bridge.definition import BadRecords, Run
from bridge.errors import DefinitionError, OptionError
from bridge.metrics.alerts import check_alert
from bridge.metrics.lineage import check_lineage
from bridge.metrics.monitoring import NOWHERE, Monitoring
from bridge.metrics.otlp import check_url
from bridge.metrics.prometheus import LEGAL, parsed
from bridge.options.kinds import DURATION, STRING, Kind, choice, duration_ms
from bridge.options.model import Option, Support
from bridge.sql.statements import Insert, SetOption, Statement

ALLOW_LATENESS = "table.exec.emit.allow-lateness"
IDLE_TIMEOUT = "table.exec.source.idle-timeout"
NOT_NULL = "table.exec.sink.not-null-enforcer"
CLOSED_WINDOWS = "bridge.state.closed-windows"
STEP_TIMEOUT = "bridge.step-timeout"
METRICS, EVENTS, ALERT, OTLP = "bridge.metrics", "bridge.events", "bridge.alert", "bridge.otlp"
LINEAGE = "bridge.lineage"
BAD_RECORDS = "bridge.bad-records"

_INTERVAL = "the interval of `bridge run --every` is the interval of commits; every batch is one checkpoint"
_SPARK = "Spark decides it; pass --conf to the command"


def _ignored(key: str, description: str, reason: str) -> Option[str]:
    return Option(key, STRING, description, support=Support.IGNORED, reason=reason)


def _refused(key: str, description: str, reason: str) -> Option[str]:
    return Option(key, STRING, description, support=Support.REFUSED, reason=reason)


KEYS: tuple[Option[Any], ...] = (
    Option("bridge.state", STRING, "Folder of the script's state: its tables, results and progress."),
    Option(
        CLOSED_WINDOWS,
        choice("keep", "remove"),
        "What happens to the state's rows of closed windows; --rebuild needs them.",
        default="keep",
    ),
    Option(
        BAD_RECORDS,
        choice(*(way.value for way in BadRecords)),
        "What becomes of a record that cannot be decoded, and of a row for which an expression fails (division by "
        "zero): fail stops the run, quarantine stores it in a Delta table, skip counts it only.",
        default=BadRecords.FAIL.value,
    ),
    Option(
        STEP_TIMEOUT,
        DURATION,
        "Maximum time of one step (read, merge, INSERT, send); then the process ends with 5. 0 is no bound.",
        default="10 min",
    ),
    Option(
        METRICS,
        Kind("String", parsed, LEGAL),
        "Where Prometheus finds the metrics: HOST:PORT, a file whose name ends in .prom, or the URL of a push gateway.",
    ),
    Option(EVENTS, STRING, "Where the events of a run go, a JSON line each: stdout, or a file."),
    Option(
        ALERT,
        Kind("String", check_alert, "the URL of a webhook"),
        "The URL of a webhook that hears when the run fails, records are bad or are lost.",
    ),
    Option(
        OTLP,
        Kind("String", check_url, "the URL of a collector of OpenTelemetry"),
        "The URL of a collector of OpenTelemetry, which gets metrics and traces by OTLP over HTTP.",
    ),
    Option(
        LINEAGE,
        Kind("String", check_lineage, "a file, or the URL of a collector"),
        "Where the events of OpenLineage go: a file, a JSON line each, or the URL of a collector.",
    ),
    Option(
        "pipeline.name", STRING, "Name of the script; by default the name of its file without its suffix."
    ),
    Option(
        "execution.runtime-mode",
        choice("streaming", "STREAMING"),
        "Results are kept up to date while the sources change.",
        default="streaming",
    ),
    _ignored("execution.checkpointing.interval", "Flink's interval of checkpoints.", _INTERVAL),
    _ignored(
        "execution.checkpointing.mode", "Flink's mode of checkpoints.", "progress is always exactly-once"
    ),
    _ignored("parallelism.default", "Flink's number of parallel tasks.", _SPARK),
    _ignored("state.backend", "Flink's state backend.", "state is in Delta tables"),
    _ignored("state.backend.type", "Flink's state backend.", "state is in Delta tables"),
    _ignored("table.exec.mini-batch.enabled", "Flink's mini batches.", "each batch is one"),
    _ignored("table.exec.mini-batch.allow-latency", "Flink's mini batches.", "each batch is one"),
    _ignored("table.exec.mini-batch.size", "Flink's mini batches.", "each batch is one"),
    Option(
        ALLOW_LATENESS,
        DURATION,
        "How late a row may be: until then it counts in its window, whose result is corrected.",
        default="0 ms",
    ),
    Option(
        IDLE_TIMEOUT,
        DURATION,
        "Time without rows after which a partition of a source no longer holds the watermark back; 0 is never. "
        "'scan.watermark.idle-timeout' of a table goes before it.",
        default="0 ms",
    ),
    Option(
        NOT_NULL,
        choice("DROP", "drop"),
        "DROP leaves out rows with NULL in the PRIMARY KEY or a NOT NULL column of a sink. Without it NULL is a value "
        "like any other; Flink's default, ERROR, is not supported.",
    ),
    _ignored("sql-client.execution.result-mode", "How Flink's client shows rows.", "a script shows no rows"),
    Option(
        "table.exec.state.ttl",
        DURATION,
        "Time after which Flink forgets state; 0, its default, is never.",
        default="0 ms",
        support=Support.REFUSED,
        reason="results are computed again from the rows of the sources, so what was sent of a forgotten row would be "
        f"taken back; remove it, and bound the state by windows (SET '{CLOSED_WINDOWS}' = 'remove') or by deletes in "
        "upsert topics",
    ),
    Option(
        "table.local-time-zone",
        STRING,
        "Time zone of the session.",
        default="UTC",
        support=Support.REFUSED,
        reason="a script computes times in UTC, whatever the time zone of its machine; write 'UTC', or remove it, and "
        "shift times in the query (ts + INTERVAL '2' HOUR)",
    ),
)
_BY_KEY = {option.key: option for option in KEYS}


@dataclass(frozen=True)
class Settings:
    """What the SET statements of a script say. `warnings` are about keys without effect."""

    name: str | None = None
    state: str | None = None
    """The folder of the state as it is written, relative to the script; None if it is not set."""
    lateness_ms: int = 0
    """How late a row of a window may be."""
    removes_closed: bool = False
    """Whether rows of closed windows are removed from the state."""
    step_timeout_seconds: float = Run.step_timeout_seconds
    monitoring: Monitoring = NOWHERE
    idle_timeout_ms: int = 0
    """After how long without rows a partition is idle, where its table does not say it; 0 is never."""
    drops_nulls: bool = False
    """Whether rows with NULL in a column of a sink that is NOT NULL, or in its key, are left out."""
    bad_records: BadRecords = BadRecords.FAIL
    """What becomes of records and rows that cannot be applied."""
    warnings: tuple[str, ...] = ()


def settings(statements: Iterable[Statement]) -> Settings:
    """Checks all SET statements, whose values are substituted already.

    Raises DefinitionError and OptionError with line and column: for keys that are unknown or refused, for keys that are
    set twice, and for SET after an INSERT, which it would not affect in Flink.
    """
    values: dict[str, str] = {}
    warnings = []
    has_insert = False
    for statement in statements:
        has_insert = has_insert or isinstance(statement, Insert)
        if not isinstance(statement, SetOption):
            continue
        key = statement.key.text
        option = _option(statement.source, statement)
        if key in values:
            raise statement.source.error(f"'{key}' is set twice; remove one", statement.key.start)
        if has_insert:
            raise statement.source.error(
                f"SET '{key}' has no effect on the INSERTs before it; move it before the first INSERT",
                statement.start,
            )
        values[key] = statement.value
        if option.support is Support.IGNORED:
            warnings.append(f"SET '{key}' has no effect: {option.reason}")
    lateness = duration_ms(values.get(ALLOW_LATENESS, "0 ms"))
    return Settings(
        values.get("pipeline.name"),
        values.get("bridge.state"),
        lateness,
        values.get(CLOSED_WINDOWS) == "remove",
        duration_ms(values[STEP_TIMEOUT]) / 1000 if STEP_TIMEOUT in values else Run.step_timeout_seconds,
        Monitoring.of(*map(values.get, (METRICS, EVENTS, ALERT, OTLP, LINEAGE))),
        duration_ms(values.get(IDLE_TIMEOUT, "0 ms")),
        NOT_NULL in values,
        BadRecords(values.get(BAD_RECORDS, BadRecords.FAIL.value)),
        tuple(warnings),
    )


def _option(source: Source, statement: SetOption) -> Option[Any]:
    key, at = statement.key.text, statement.key.start
    option = _BY_KEY.get(key)
    if option is None:
        near = get_close_matches(key.lower(), _BY_KEY, 1, 0.6)
        hint = f"did you mean '{near[0]}'?" if near else f"known keys are {', '.join(sorted(_BY_KEY))}"
        raise source.error(f"SET '{key}': this key is not known; {hint}", at)
    try:
        value = option.parse(statement.value)
    except OptionError as error:
        raise DefinitionError(str(source.error(f"SET {error}", at))) from None
    is_default = option.default is not None and value == option.parse(option.default)
    if option.support is Support.REFUSED and not is_default:
        raise source.error(f"SET '{key}' is refused: {option.reason}", at)
    if not statement.value.strip():
        raise source.error(f"SET '{key}': the value is empty; set a value, or remove the statement", at)
    return option

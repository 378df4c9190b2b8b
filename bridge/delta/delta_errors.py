"""Translates exceptions of Spark and Delta into the bridge's own, with messages that fit on one screen.

Only known error conditions are translated. Everything else passes unchanged, as a lazy frame raises failures of other
steps, too (a bad record, an expired offset).
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from bridge.backend import causes
from bridge.delta.table_checks import IDENTITY_WAY_OUT
from bridge.errors import REPUBLISH, BridgeError, GapError, TableError

CONFLICTS = frozenset(
    {
        "ConcurrentAppendException",
        "ConcurrentDeleteDeleteException",
        "ConcurrentDeleteReadException",
        "ConcurrentWriteException",
        "MetadataChangedException",
        "ProtocolChangedException",
    }
)
"""Exceptions of an optimistic commit that lost to another writer and may be attempted again."""

_BY_CONDITION = {
    "DELTA_CONCURRENT_APPEND": "ConcurrentAppendException",
    "DELTA_CONCURRENT_DELETE_DELETE": "ConcurrentDeleteDeleteException",
    "DELTA_CONCURRENT_DELETE_READ": "ConcurrentDeleteReadException",
    "DELTA_CONCURRENT_TRANSACTION": "ConcurrentTransactionException",
    "DELTA_CONCURRENT_WRITE": "ConcurrentWriteException",
    "DELTA_METADATA_CHANGED": "MetadataChangedException",
    "DELTA_PROTOCOL_CHANGED": "ProtocolChangedException",
}
"""The exceptions of Delta by their conditions."""

SCHEMA_CHANGED_MEANWHILE = frozenset({"DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS"})
"""The columns changed between the analysis of a statement and its start; it may be attempted again."""

_T = TypeVar("_T")

ATTEMPTS = 6
_FIRST_PAUSE_SECONDS = 0.5

_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]")

_LOG_GONE = {
    "DELTA_EMPTY_DIRECTORY",
    "DELTA_LOG_FILE_NOT_FOUND",
    "DELTA_MISSING_FILES_UNEXPECTED_VERSION",
    "DELTA_TRUNCATED_TRANSACTION_LOG",
    "DELTA_VERSIONS_NOT_CONTIGUOUS",
    "VersionNotFoundException",
}
_FILES_GONE = {"FAILED_READ_FILE.FILE_NOT_EXIST", "FileNotFoundException", "DELTA_FILE_NOT_FOUND"}
_FEED_OFF = {"DELTA_MISSING_CHANGE_DATA", "DELTA_CHANGE_TABLE_FEED_DISABLED"}
SCHEMA_CHANGED = {
    "DELTA_BLOCK_COLUMN_MAPPING_AND_CDC_OPERATION",
    "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA",
    "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE",
}
"""The columns changed between versions."""
_NO_TABLE = {
    "DELTA_MISSING_DELTA_TABLE",
    "DELTA_TABLE_NOT_FOUND",
    "DELTA_PATH_DOES_NOT_EXIST",
    "PATH_NOT_FOUND",
    "TABLE_OR_VIEW_NOT_FOUND",
}
_UNSUPPORTED = {
    "DELTA_INVALID_PROTOCOL_VERSION",
    "DELTA_UNSUPPORTED_FEATURES_FOR_READ",
    "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
}
_CATALOG_MANAGED = {"DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED"}
_IDENTITY = {
    "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED",
    "DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED",
}
_CONSTRAINTS = {
    "DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
    "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
    "DELTA_EXCEED_CHAR_VARCHAR_LIMIT",
    "EXCEED_LIMIT_LENGTH",
}

_CONSTRAINT = re.compile(
    r"(?P<CHECK>(?<=CHECK constraint )\S+)|(?P<NULL>(?<=NOT NULL constraint violated for column: )\S+?(?=\.?(?:\s|$)))"
    r"|(?P<LENGTH>(?<=Failed check: )[^\n]{1,200}|(?<=type length limitation: )\d+)"
)
_WORDS = {
    "CHECK": "the constraint",
    "NULL": "NOT NULL of column",
    "LENGTH": "the length of a CHAR or VARCHAR column:",
}
"""What Delta's messages say of a constraint; the values of the row stand elsewhere."""
_BROKEN = "broken: "


class BrokenConstraint(TableError):
    """Raised if Delta refuses a row because of a constraint of the table."""


def error_names(error: BaseException) -> frozenset[str]:
    """The error conditions (DELTA_...) and simple class names of a Java exception and its causes, and the constraint
    that a row has broken, without its values.

    Empty for an exception that does not come from Spark.
    """
    names: set[str] = set()
    for kind, text in causes(error):
        names.add(kind)
        if (condition := _CONDITION.match(text)) is not None:
            # Through Spark Connect the condition alone is known, which may have a part of its own behind a dot.
            names |= {condition[1], condition[1].partition(".")[0]}
        if (broken := _CONSTRAINT.search(text)) is not None and names & _CONSTRAINTS:
            names.add(f"{_BROKEN}{_WORDS[str(broken.lastgroup)]} {broken[0].rstrip('.')}")
    return frozenset(names | {_BY_CONDITION[name] for name in names & _BY_CONDITION.keys()})


def attempts() -> Iterator[int]:
    """Number the attempts of a commit that may conflict with other writers, with growing pauses between them."""
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(_FIRST_PAUSE_SECONDS * 2 ** (attempt - 1) * random.uniform(0.5, 1.5))
        yield attempt


def conflict_error(target: object, what: str) -> TableError:
    """The error for a commit, named by `what`, whose `attempts` all conflicted with other writers."""
    return TableError(
        f"table {target}: {what} conflicted with other writers {ATTEMPTS} times in a row; nothing "
        "of it is written. Run OPTIMIZE and other jobs on this table at another time, then start again"
    )


def replaced_error(table: object) -> TableError:
    """The error for a table at whose place another one is now."""
    return TableError(
        f"table {table} was replaced by another one during this run; start it again: it reports what to do"
    )


def retry_conflicts(target: object, commit: Callable[[], _T], who: str, way_out: str) -> _T:
    """Call `commit` until it does not conflict with other writers, as often as `attempts` allows; return its result.

    Raises as `table_errors`, and TableError with `who` and `way_out` when every attempt conflicted."""
    conflict: Exception | None = None
    for _ in attempts():
        try:
            with table_errors(target):
                return commit()
        except Exception as error:
            if not error_names(error) & CONFLICTS:
                raise
            conflict = error
    raise TableError(
        f"{who} conflicted with other writers {ATTEMPTS} times in a row; {way_out}"
    ) from conflict


@contextmanager
def translated(explain: Callable[[frozenset[str]], BridgeError | None]) -> Iterator[None]:
    """Raise the error that `explain` returns for an exception's `error_names`; let the exception pass where that is
    None."""
    try:
        yield
    except BridgeError:
        raise
    except Exception as error:
        translation = explain(error_names(error))
        if translation is None:
            raise
        raise translation from error


@contextmanager
def table_errors(target: object) -> Iterator[None]:
    """Raise TableError for Delta's errors about table `target` itself; messages contain no values."""
    with translated(lambda names: table_error(target, names)):
        yield


@contextmanager
def feed_errors(target: object, first: int, last: int) -> Iterator[None]:
    """Wrap an action on a frame of `change_feed`: raise GapError where versions first..last cannot be read.

    The causes are a cleaned log, vacuumed files, a change feed that was off, and columns renamed or dropped in between.
    Other errors of the table are TableError.
    """
    needed = f"versions {first} to {last} are" if last > first else f"version {first} is"

    def explain(names: frozenset[str]) -> BridgeError | None:
        reasons = (
            (_FEED_OFF, "the change data feed was off for part of them"),
            (SCHEMA_CHANGED, "columns were renamed, dropped or retyped in between"),
            (_LOG_GONE, "the table's log no longer reaches back that far"),
            (_FILES_GONE, "files of those versions have been vacuumed"),
        )
        for conditions, reason in reasons:
            if names & conditions:
                return GapError(
                    f"table {target}: {needed} needed, but {reason}; {REPUBLISH}; "
                    "to keep more history raise delta.logRetentionDuration and delta.deletedFileRetentionDuration"
                )
        return table_error(target, names)

    with translated(explain):
        yield


def table_error(target: object, names: frozenset[str]) -> BridgeError | None:
    """The error for an exception of table `target` with these `error_names`; None where none of them is known here."""
    if names & _NO_TABLE:
        return TableError(f"no Delta table at {target}: check `delta.path` or `delta.table`")
    if "UnsupportedFileSystemException" in names or "ClassNotFoundException" in names:
        return TableError(f"Spark has no file system for {target}; add the jar of that store to spark.jars")
    if names & _UNSUPPORTED:
        return TableError(
            f"table {target} uses Delta features that this version of Delta cannot handle; use a newer "
            "delta-spark, or drop the feature (ALTER TABLE ... DROP FEATURE, see DESCRIBE DETAIL)"
        )
    if names & _CATALOG_MANAGED:
        return TableError(
            f"table {target} is catalog-managed: its newest commits are known to its catalog alone. Name it by "
            "`delta: {table: catalog.schema.table}`"
        )
    if names & _IDENTITY:
        return TableError(
            f"table {target} has an identity column in the definition, whose values Delta gives, and never updates. "
            f"{IDENTITY_WAY_OUT}"
        )
    broken = next((name for name in names if name.startswith(_BROKEN)), None)
    if broken is not None or names & _CONSTRAINTS:
        which = (
            "a constraint (NOT NULL, CHECK or a length)" if broken is None else broken.removeprefix(_BROKEN)
        )
        return BrokenConstraint(
            f"table {target}: a row of this batch breaks {which}; nothing of it is written. Correct the source, or "
            "drop the constraint (SHOW CREATE TABLE shows it)"
        )
    if "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE" in names:
        return BridgeError(f"the changes for table {target} contain a key twice: compact them before merging")
    if names & (_LOG_GONE | _FILES_GONE):
        return TableError(
            f"table {target} has lost files that its newest version needs; bring them back, or RESTORE the "
            "table to a version that is whole, or drop the table and ingest again"
        )
    return None

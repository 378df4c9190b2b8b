"""The exceptions of the bridge.

    BridgeError                     root of all errors of the bridge           exit 1
    ├── DefinitionError             the pipeline file or script is refused     exit 2
    │   ├── DdlError                a statement in Flink SQL is illegal or not supported (file, line, column)
    │   ├── OptionError             an option key or value is refused
    │   └── UnsupportedError        legal in Flink, not supported in this version of the bridge
    ├── KafkaError                  a broker, topic or client configuration is not usable
    │   ├── TopicMissingError       the topic does not exist
    │   └── MissingPackageError     Spark's executors lack a Python package
    ├── BadRecordError              a record cannot be applied, with `bad-records: fail`
    ├── TableError                  the pipeline cannot use the Delta table
    │   ├── AmbiguousKeyError       two rows would have one key
    │   └── UnwritableRowError      a format cannot write a row of it
    ├── GapError                    something that the progress needs is gone
    ├── ConcurrentRunError          another run of the same pipeline wrote at the same time
    ├── QualityError                a quality suite failed                     exit 3
    └── DifferenceError             verify found differences                   exit 4

A process whose pipeline makes no progress ends with 5 (STALLED); it raises nothing, as it may hang in native code.

A message says what is wrong, where, and how to resolve it. It never contains a payload or a secret.
"""

from __future__ import annotations

from typing import ClassVar

REBUILD = "run `bridge resync FILE`, which reads the topic from its beginning and repairs rows of the table that differ"
REPUBLISH = "run `bridge resync FILE`, which compares the table with the topic and sends the rows that differ"
"""The way out of a gap of an ingest, and of a publish, for all messages."""

STALLED = 5
"""The exit code of a process that its watchdog has ended. It is the number of SIGTRAP, too: see `watchdog`."""


class BridgeError(Exception):
    """Base class of all errors of the bridge. `exit_code` is the exit code of the command."""

    exit_code: ClassVar[int] = 1


class DefinitionError(BridgeError):
    """Raised if the pipeline file or the script is refused, before it has any effect."""

    exit_code: ClassVar[int] = 2


class DdlError(DefinitionError):
    """Raised if a statement in Flink SQL is illegal or uses something that is not supported.

    The message starts with `file:line:column:`; attributes provide the position, too.
    """

    def __init__(self, message: str, file: str = "<ddl>", line: int = 1, column: int = 1) -> None:
        super().__init__(message, file, line, column)
        self.message, self.file, self.line, self.column = message, file, line, column

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.message}"


class OptionError(DefinitionError):
    """Raised if an option is unknown, misplaced or refused, or has an illegal value."""


class UnsupportedError(DefinitionError):
    """Raised for features of Flink that this version of the bridge does not support; `what` names the feature."""

    def __init__(self, message: str, what: str) -> None:
        super().__init__(message, what)
        self.message, self.what = message, what

    def __str__(self) -> str:
        return self.message


class KafkaError(BridgeError):
    """Raised if a broker cannot be reached, refuses the connection or responds with an error."""


class TopicMissingError(KafkaError):
    """Raised if a topic of the definition does not exist."""


class MissingPackageError(KafkaError):
    """Raised if a Python package that a task needs is missing on Spark's executors."""


class BadRecordError(BridgeError):
    """Raised if a record cannot be applied and `bad-records` is `fail`."""


class TableError(BridgeError):
    """Raised if the pipeline cannot use the Delta table, or what exists in its place."""


class AmbiguousKeyError(TableError):
    """Raised if two rows would have one key where each key has one row; the message names such a key."""


class UnwritableRowError(TableError):
    """Raised if a format cannot write a row; the message has its column, and neither table nor version."""


class GapError(BridgeError):
    """Raised if the progress needs records or table versions that no longer exist."""


class ConcurrentRunError(BridgeError):
    """Raised if the table contains a concurrent commit of another run of the same pipeline."""


class QualityError(BridgeError):
    """Raised if a quality suite fails and `on-failure` is `fail`."""

    exit_code: ClassVar[int] = 3


class DifferenceError(BridgeError):
    """Raised if topic and table differ at the compared positions."""

    exit_code: ClassVar[int] = 4

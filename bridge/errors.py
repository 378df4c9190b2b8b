"""Every error the bridge raises on purpose.

    BridgeError                     root; promises nothing but "ours"          exit 1
    ├── DefinitionError             the pipeline file is refused               exit 2
    │   ├── DdlError                the CREATE TABLE cannot be read or used (file, line, column)
    │   ├── OptionError             an option key or value is refused
    │   └── UnsupportedError        legal in Flink, not in this version of the bridge
    ├── KafkaError                  a broker, topic or client configuration is not usable
    │   └── TopicMissingError       the topic does not exist
    ├── BadRecordError              a record cannot be decoded and `bad-records: fail` holds
    ├── TableError                  the Delta table is not what the pipeline needs
    ├── GapError                    what progress asks for is no longer there
    ├── ConcurrentRunError          another run of the same pipeline wrote in between
    ├── QualityError                a quality suite failed                     exit 3
    └── DifferenceError             verify found topic and table to differ     exit 4

A message says what is wrong, where, and what to do about it; it never holds a payload or a secret.
"""

from __future__ import annotations

from typing import ClassVar

REBUILD = "`bridge resync FILE` heals it: it reads the topic from its beginning and changes what differs in the table"
REPUBLISH = (
    "`bridge resync FILE` heals it: it compares the table with what the topic holds and sends what differs"
)
"""The ways out of a gap, said the same everywhere."""

__all__ = [
    "REBUILD",
    "REPUBLISH",
    "BadRecordError",
    "BridgeError",
    "ConcurrentRunError",
    "DdlError",
    "DefinitionError",
    "DifferenceError",
    "GapError",
    "KafkaError",
    "OptionError",
    "QualityError",
    "TableError",
    "TopicMissingError",
    "UnsupportedError",
]


class BridgeError(Exception):
    """Root of the tree. `exit_code` is what the command line ends with."""

    exit_code: ClassVar[int] = 1


class DefinitionError(BridgeError):
    """Raised before anything is touched, when the pipeline file cannot be accepted."""

    exit_code: ClassVar[int] = 2


class DdlError(DefinitionError):
    """Raised when a CREATE TABLE statement cannot be read, or holds what a pipeline cannot use.

    The message starts with `file:line:column:`; the position is also kept for editors.
    """

    def __init__(self, message: str, file: str = "<ddl>", line: int = 1, column: int = 1) -> None:
        super().__init__(message, file, line, column)
        self.message, self.file, self.line, self.column = message, file, line, column

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.message}"


class OptionError(DefinitionError):
    """Raised when an option is unknown, misplaced, refused, or has an illegal value."""


class UnsupportedError(DefinitionError):
    """Raised for what Flink accepts and this version of the bridge cannot do yet; `what` names it shortly."""

    def __init__(self, message: str, what: str) -> None:
        super().__init__(message, what)
        self.message, self.what = message, what

    def __str__(self) -> str:
        return self.message


class KafkaError(BridgeError):
    """Raised when a broker cannot be reached, refuses us, or answers with an error."""


class TopicMissingError(KafkaError):
    """Raised when a topic named by the definition does not exist."""


class BadRecordError(BridgeError):
    """Raised when a record cannot be applied and `bad-records` is `fail`."""


class TableError(BridgeError):
    """Raised when the path or table holds something the pipeline cannot work with."""


class GapError(BridgeError):
    """Raised when progress points at records or versions that are not there any more."""


class ConcurrentRunError(BridgeError):
    """Raised when the table shows a commit of the same pipeline by another run."""


class QualityError(BridgeError):
    """Raised when a quality suite failed and `on-failure` is `fail`."""

    exit_code: ClassVar[int] = 3


class DifferenceError(BridgeError):
    """Raised when topic and table are not equal at the compared positions."""

    exit_code: ClassVar[int] = 4

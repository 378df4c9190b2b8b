"""Parses Flink's CREATE TABLE: `parse(text)` returns a `Ddl` or raises DdlError with the position.

`bridge.sql` uses the tokens, the cursor and the dialect of this package for whole scripts.
"""

from bridge.ddl.elements import condition
from bridge.ddl.statement import Ddl, parse

__all__ = ["Ddl", "condition", "parse"]

"""Parses Flink's CREATE TABLE: `parse(text)` returns a `Ddl` or raises DdlError with the position."""

from bridge.ddl.statement import Ddl, parse

__all__ = ["Ddl", "parse"]

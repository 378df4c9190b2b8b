"""Flink's CREATE TABLE as plain values: `parse(text)` gives a `Ddl`, or raises DdlError with the place."""

from bridge.ddl.statement import Ddl, parse

__all__ = ["Ddl", "parse"]

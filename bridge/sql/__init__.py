"""Reads scripts in Flink SQL and plans their INSERTs, without Spark and Kafka: `load_script(path)`."""

from bridge.sql.plan import InsertPlan, Script, SourceTable, StateTable
from bridge.sql.script import load_script
from bridge.sql.show import as_json, as_rows

__all__ = ["InsertPlan", "Script", "SourceTable", "StateTable", "as_json", "as_rows", "load_script"]

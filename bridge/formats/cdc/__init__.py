"""Flink's formats of change documents in JSON: Debezium, Canal, Maxwell, Oracle GoldenGate.

Fields are read as format json reads them, by the same code. (Flink reads them with its tree parser, which rounds
fractions in a STRING to DOUBLE first; here they stay as written.)
"""

from bridge.formats.cdc.canal import CanalJsonFormat
from bridge.formats.cdc.debezium import DebeziumJsonFormat
from bridge.formats.cdc.maxwell import MaxwellJsonFormat
from bridge.formats.cdc.ogg import OggJsonFormat

__all__ = ["CanalJsonFormat", "DebeziumJsonFormat", "MaxwellJsonFormat", "OggJsonFormat"]

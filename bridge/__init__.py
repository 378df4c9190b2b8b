"""Keeps Kafka topics and Delta Lake tables equal, in both directions.

    from bridge import ingest, load
    ingest(spark, load("conf/orders.yaml"))

Importing this package starts nothing and imports neither Spark nor Kafka; each name is imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bridge.spark_versions import spark_needed

if TYPE_CHECKING:
    from bridge.config.load import load as load
    from bridge.definition import Definition as Definition
    from bridge.errors import BridgeError as BridgeError
    from bridge.pipelines.compare.verify import verify as verify
    from bridge.pipelines.ingest.run import ingest as ingest
    from bridge.pipelines.publish.run import publish as publish
    from bridge.pipelines.quality.check import check as check

__all__ = ["BridgeError", "Definition", "check", "ingest", "load", "publish", "verify"]

_HOMES = {
    "BridgeError": "bridge.errors",
    "Definition": "bridge.definition",
    "check": "bridge.pipelines.quality.check",
    "ingest": "bridge.pipelines.ingest.run",
    "load": "bridge.config",
    "publish": "bridge.pipelines.publish.run",
    "verify": "bridge.pipelines.compare.verify",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'bridge' has no attribute {name!r}")
    with spark_needed():
        return getattr(import_module(_HOMES[name]), name)

"""The changelog bridge: Kafka upsert topics and Delta Lake tables, kept equal, both ways.

    from bridge import ingest, load
    ingest(spark, load("conf/orders.yaml"))

Importing this package starts nothing and imports neither Spark nor Kafka; each name is loaded when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bridge.config import load as load
    from bridge.definition import Definition as Definition
    from bridge.errors import BridgeError as BridgeError
    from bridge.pipelines.check import check as check
    from bridge.pipelines.ingest import ingest as ingest
    from bridge.pipelines.publish import publish as publish
    from bridge.pipelines.verify import verify as verify

__all__ = ["BridgeError", "Definition", "check", "ingest", "load", "publish", "verify"]

_HOMES = {
    "BridgeError": "bridge.errors",
    "Definition": "bridge.definition",
    "check": "bridge.pipelines.check",
    "ingest": "bridge.pipelines.ingest",
    "load": "bridge.config",
    "publish": "bridge.pipelines.publish",
    "verify": "bridge.pipelines.verify",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'bridge' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)

"""Which log stores commit to Delta tables: those that let one of several writers win (docs/adr/062).

`log-store.jar` is made from the Java sources beside it by `python -m bridge.log_store.build`; a test builds it anew and
compares. The classes need nothing beside Delta, and Hadoop's S3A client for S3.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from bridge import jars
from bridge.spark_versions import has_class

__all__ = ["JAR", "LOG_STORES", "add_log_store", "log_store_jar", "log_store_settings"]

LOG_STORES = {
    "file": "changelogbridge.LinkLogStore",
    "s3a": "changelogbridge.ConditionalLogStore",
}
"""The class for each scheme that has one; elsewhere Delta's own store lets one writer win."""
JAR = "log-store.jar"
_ALL_SCHEMES = "spark.delta.logStore.class"
_CONDITIONAL_REQUESTS = (3, 4, 2)
"""The oldest Hadoop that makes them on S3."""


def log_store_settings(stores: Collection[str], hadoop: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that choose the log stores, for a session that is to reach `stores` (schemes) and files.

    Without S3 for a Hadoop before 3.4.2, which makes no conditional requests. What `given`, the user's settings,
    choose stays.
    """
    if _ALL_SCHEMES in given:
        return {}
    schemes = {"file", *stores} & LOG_STORES.keys()
    if tuple(map(int, re.findall(r"\d+", hadoop)[:3])) < _CONDITIONAL_REQUESTS:
        schemes.discard("s3a")
    settings = {f"spark.delta.logStore.{scheme}.impl": LOG_STORES[scheme] for scheme in sorted(schemes)}
    return {key: value for key, value in settings.items() if key not in given}


def add_log_store(jvm: Any) -> list[str]:
    """Add the jar to the class path of a JVM that spark-submit started, and return it in a list; empty if it is there,
    or if the JVM takes no further jars."""
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    if has_class(jvm, LOG_STORES["file"]) or not hasattr(loader, "addURL"):
        return []
    jar = str(log_store_jar())
    loader.addURL(jvm.java.io.File(jar).toURI().toURL())
    return [jar]


def log_store_jar() -> Path:
    """Return the jar with the classes, as a file that a JVM opens: a copy of it where the bridge itself is in a zip."""
    packed = files("bridge.log_store") / JAR
    if isinstance(packed, Path):
        return packed
    content = packed.read_bytes()
    unpacked = jars.home() / "jars" / f"log-store-{hashlib.sha256(content).hexdigest()[:12]}.jar"
    if not unpacked.exists():
        unpacked.parent.mkdir(parents=True, exist_ok=True)
        scratch = unpacked.with_suffix(f".{os.getpid()}")
        scratch.write_bytes(content)
        scratch.replace(unpacked)
    return unpacked

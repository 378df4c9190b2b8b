from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bridge.embedded.schema_registry import SchemaRegistryServer


@pytest.fixture
def registry_options(registry: SchemaRegistryServer, unique: Callable[[str], str]) -> dict[str, Any]:
    """Options of a registry format: the session's registry, and a subject of this test's own."""
    return {"url": registry.url, "subject": unique("subject")}

"""Which scenarios the default run takes through Spark and through the broker; `make slow` takes the others."""

from __future__ import annotations

import pytest

_BY_DEFAULT = {
    "test_the_spark_steps_agree_with_the_file": ("insert_update_delete", "every_type"),
    "test_a_broker_in_between_changes_nothing": ("insert_update_delete",),
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the rest slow."""
    for item in items:
        kept = _BY_DEFAULT.get(getattr(item, "originalname", ""))
        if kept is not None and not any(name in item.name for name in kept):
            item.add_marker(pytest.mark.slow)

"""Values of a definition."""

from __future__ import annotations

from bridge.definition import DeltaTarget, Topic


def test_the_text_of_a_target_is_its_name_or_path() -> None:
    assert str(DeltaTarget(table="main.sales.orders")) == "main.sales.orders"
    assert str(DeltaTarget(path="lake/orders")) == "lake/orders"


def test_definitions_are_frozen() -> None:
    assert Topic.__dataclass_params__.frozen and DeltaTarget.__dataclass_params__.frozen  # type: ignore[attr-defined]

"""Formats by name."""

from __future__ import annotations

import pytest

from bridge.errors import OptionError, UnsupportedError
from bridge.formats import catalog


def test_every_available_format_is_found_under_its_own_name() -> None:
    assert [catalog.get(name).name for name in catalog.available()] == list(catalog.available())


def test_a_format_of_flink_that_is_not_here_yet_is_named() -> None:
    with pytest.raises(
        UnsupportedError, match=r"format 'protobuf' is not supported yet; available: .*json"
    ) as error:
        catalog.get("protobuf")
    assert error.value.what == "format 'protobuf'"


def test_an_unknown_format_lists_what_there_is() -> None:
    with pytest.raises(OptionError, match=r"format 'jason' is unknown; available: .*json"):
        catalog.get("jason")

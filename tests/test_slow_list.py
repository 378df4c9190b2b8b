"""The list of slow tests names tests that exist, once each."""

from __future__ import annotations

import pytest

from tests.conftest import SLOW, UNMATCHED


def test_every_line_names_tests(pytestconfig: pytest.Config) -> None:
    """Of the files that this run has collected; the default run collects all."""
    lines = [line for line in SLOW.read_text().splitlines() if line and not line.startswith("#")]
    assert len(set(lines)) == len(lines)
    assert pytestconfig.stash[UNMATCHED] == set()

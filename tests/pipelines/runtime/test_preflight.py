"""Warnings about a topic before a run begins."""

from __future__ import annotations

from pathlib import Path

from bridge.pipelines.runtime.preflight import publish_warnings
from tests.config.files import WHOLE, loaded


def test_a_publish_names_settings_that_it_makes_no_use_of(tmp_path: Path) -> None:
    assert publish_warnings(loaded(tmp_path, WHOLE).topic) == []
    more = "'properties.max.poll.records' = '5', 'key.format'"
    (warning,) = publish_warnings(loaded(tmp_path, WHOLE.replace("'key.format'", more)).topic)
    assert warning == "'properties.max.poll.records' has no effect on publish: only a consumer uses it"

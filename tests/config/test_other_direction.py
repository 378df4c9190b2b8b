"""Settings that a verb does not use are named in one warning."""

from __future__ import annotations

from pathlib import Path

from bridge.config import settings_without_effect
from tests.config.files import WHOLE, loaded


def test_settings_of_the_other_direction_are_named(tmp_path: Path) -> None:
    more = "'properties.fetch.min.bytes' = '1', 'properties.group.id' = 'g', 'properties.acks' = 'all',"
    topic = loaded(tmp_path, WHOLE.replace("'key.format'", f"{more} 'key.format'")).topic
    warning = "'properties.fetch.min.bytes', 'properties.group.id' have no effect on publish: only a consumer uses them"
    assert list(settings_without_effect(topic, "publish")) == [warning]
    assert list(settings_without_effect(topic, "ingest")) == [
        "'properties.acks' has no effect on ingest: only a producer uses it"
    ]
    plain = loaded(tmp_path, WHOLE).topic
    assert [*settings_without_effect(plain, "publish"), *settings_without_effect(plain, "ingest")] == []

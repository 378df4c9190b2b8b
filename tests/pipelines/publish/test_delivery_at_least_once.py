"""In which ranges of an at-least-once publish no key has two records."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge import config
from bridge.pipelines.publish.sharding import is_unique_in_range
from bridge.publish_progress import PublishRange


@pytest.mark.parametrize(
    ("options", "publish_range", "unique"),
    [
        pytest.param("", PublishRange(4, 4), True, id="one version"),
        pytest.param("", PublishRange(4, 5), False, id="two versions"),
        pytest.param("", PublishRange(4, 4, snapshot=True, chunks=3), True, id="a snapshot"),
        pytest.param(
            "'connector' = 'kafka', 'key.fields' = 'a', 'value.format' = 'debezium-json'",
            PublishRange(4, 4),
            False,
            id="several messages for a change",
        ),
    ],
)
def test_a_key_has_one_record_in_a_range(
    tmp_path: Path, options: str, publish_range: PublishRange, unique: bool
) -> None:
    given = {"'connector'": "'upsert-kafka'", "'value.format'": "'json'"}
    given |= dict(part.split(" = ") for part in options.split(", ") if part)
    shown = ", ".join(f"{k} = {v}" for k, v in given.items())
    file = tmp_path / "p.yaml"
    file.write_text(
        "version: 1\nname: p\ntopic:\n  ddl: |\n    CREATE TABLE t (a BIGINT, b BIGINT, PRIMARY KEY (a) NOT ENFORCED) "
        f"WITH ('topic' = 't', 'properties.bootstrap.servers' = 'h:1', 'key.format' = 'json', {shown})\n"
        "delta: {path: table}\nrun: {checkpoint: c}\n"
    )
    assert is_unique_in_range(config.load(file).topic, publish_range) is unique

"""What decides which records a range has, and in which order."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bridge import config
from bridge.pipelines.publish.plan_fingerprint import plan_fingerprint

FILE = """\
version: 1
name: orders
topic:
  ddl: |
    CREATE TABLE t (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
      'connector' = 'upsert-kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'h:1',
      'key.format' = 'json', 'value.format' = 'json', 'sink.parallelism' = '3')
delta: {path: table}
run: {checkpoint: checkpoint}
publish: {net-changes: false}
"""
KEYLESS = FILE.replace(", PRIMARY KEY (id) NOT ENFORCED", "").replace("upsert-kafka", "kafka")
KEYLESS = KEYLESS.replace("'key.format' = 'json', 'value.format'", "'format'")
CHANGES = FILE.replace("upsert-kafka", "kafka").replace(
    "'value.format' = 'json'", "'key.fields' = 'id', 'value.format' = 'debezium-json'"
)


def fingerprint(folder: Path, text: str) -> str:
    file = folder / "orders.yaml"
    file.write_text(text)
    definition = config.load(file)
    return plan_fingerprint(definition, definition.topic)


@pytest.mark.parametrize(
    ("file", "before", "after", "same"),
    [
        (FILE, "'sink.parallelism' = '3'", "'sink.parallelism' = '5'", True),
        (FILE, "name STRING", "name STRING, more INT", True),
        (FILE, "'key.format' = 'json'", "'key.format' = 'csv'", False),
        (FILE, "'value.format' = 'json'", "'value.format' = 'csv'", True),
        (CHANGES, "net-changes: false", "update-messages: pair", False),
        (FILE, "net-changes: false", "net-changes: true", False),
        (FILE, "(id)", "(id, name)", False),
        (KEYLESS, "name STRING", "name STRING, more INT", False),
        (KEYLESS, "name STRING", "name STRING, at TIMESTAMP(3) METADATA FROM 'timestamp'", False),
        (KEYLESS, "name STRING", "name STRING, at TIMESTAMP(3) METADATA FROM 'timestamp' VIRTUAL", True),
        (FILE, "name STRING", "name STRING, at TIMESTAMP(3) METADATA FROM 'timestamp'", True),
        (
            KEYLESS,
            "'format' = 'json'",
            "'format' = 'json', 'json.encode.decimal-as-plain-number' = 'true'",
            False,
        ),
    ],
)
def test_what_the_order_of_records_depends_on(
    tmp_path: Path, file: str, before: str, after: str, same: bool
) -> None:
    assert before in file
    assert (fingerprint(tmp_path, file) == fingerprint(tmp_path, file.replace(before, after))) is same


def test_another_process_computes_the_same(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path;"
        "from tests.pipelines.publish.test_plan_fingerprint import KEYLESS, fingerprint;"
        "print(fingerprint(Path(sys.argv[1]), KEYLESS))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == fingerprint(tmp_path, KEYLESS)

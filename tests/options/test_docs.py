"""docs/options.md is generated from the declared options, which include all options of the manuals."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from bridge.options import FORMATS, OPTIONS, declared
from bridge.options.docs import markdown
from bridge.options.properties import SETTINGS

ROOT = Path(__file__).parents[2]
UPSERT, KAFKA = "upsert-kafka", "kafka"

FLINK_UPSERT = """
    connector topic properties.bootstrap.servers key.format value.format value.fields-include sink.parallelism
"""
ALIBABA_UPSERT = """
    connector properties.bootstrap.servers topic key.format value.format value.fields-include properties.*
    key.fields-prefix sink.parallelism sink.buffer-flush.max-rows sink.buffer-flush.interval type name
    sink.delivery-guarantee sink.add-tableId-to-header-enabled aliyun.kafka.accessKeyId
    aliyun.kafka.accessKeySecret aliyun.kafka.instanceId aliyun.kafka.endpoint aliyun.kafka.regionId
"""
SHORT_KAFKA = """
    connector topic topic-pattern properties.bootstrap.servers properties.group.id scan.startup.mode
    scan.startup.timestamp-millis scan.startup.specific-offsets format key.format key.fields value.format
    value.fields-include sink.partitioner sink.delivery-guarantee sink.transactional-id-prefix
"""
FLINK_KAFKA = """
    connector topic topic-pattern properties.bootstrap.servers properties.group.id properties.*
    format key.format key.fields key.fields-prefix value.format value.fields-include
    scan.startup.mode scan.startup.specific-offsets scan.startup.timestamp-millis scan.bounded.mode
    scan.bounded.specific-offsets scan.bounded.timestamp-millis
    scan.topic-partition-discovery.interval scan.parallelism sink.partitioner sink.semantic
    sink.delivery-guarantee sink.transactional-id-prefix sink.parallelism
"""
UNDOCUMENTED = """
    scan.bounded.mode scan.bounded.specific-offsets scan.bounded.timestamp-millis scan.parallelism
    sink.delivery-guarantee sink.transactional-id-prefix sink.transaction-naming-strategy topic-pattern
"""
"""What the upsert-kafka factory accepts and its manual omits."""

# Beginning of the manual's file name -> connector, keys, how its table writes a key.
MANUALS = {
    "000": (UPSERT, FLINK_UPSERT, r"<h5>(.+?)</h5>"),
    "001": (UPSERT, ALIBABA_UPSERT, r"^([a-z][\w.*-]+) (?:Yes|No) "),
    "002": (UPSERT, "", r"<h5>(.+?)</h5>|^##### (\S+) \["),
    "003": (KAFKA, SHORT_KAFKA, r"^([a-z][a-z.-]+?)(?:Yes|No)(?=$| \(|[A-Z]|[a-z])"),
    "004": (KAFKA, FLINK_KAFKA, r"##### (\S+) \["),
}


def test_the_page_is_what_the_generator_writes() -> None:
    page = ROOT / "docs" / "options.md"
    assert page.read_text(encoding="utf-8") == markdown(), (
        "run: python -m bridge.options.docs > docs/options.md"
    )


def test_the_page_defines_each_kind_of_support_that_it_uses() -> None:
    options = [*OPTIONS, *(option for declared in FORMATS.values() for option in declared.options)]
    used = {option.support.value for option in options} | {s.treatment.value for s in SETTINGS.values()}
    introduction = markdown().partition("\n## ")[0]
    assert set(re.findall(r"^- \*\*(.+?)\*\*:", introduction, re.MULTILINE)) == used


@pytest.mark.parametrize("manual", MANUALS)
def test_every_option_of_a_manual_is_declared(manual: str) -> None:
    connector, keys, _ = MANUALS[manual]
    assert set(keys.split()) - set(declared(connector)) == set()


def test_every_option_the_manual_omits_is_declared() -> None:
    assert set(UNDOCUMENTED.split()) - set(declared(UPSERT)) == set()


@pytest.mark.parametrize("manual", MANUALS)
def test_the_keys_above_are_those_of_the_manual(manual: str) -> None:
    named = os.environ.get("BRIDGE_SEEDS_DIR")
    folder = Path(named) if named else ROOT.parent / "shared" / "seeds"
    if not named and not folder.is_dir():
        pytest.skip("the manuals are not beside the checkout; name their folder in BRIDGE_SEEDS_DIR")
    [file] = folder.glob(f"{manual}*")
    _, keys, pattern = MANUALS[manual]
    matches = re.findall(pattern, file.read_text(encoding="utf-8"), re.MULTILINE)
    assert {key.replace("\\", "") for key in matches} == set(keys.split())


@pytest.mark.parametrize("key", sorted({o.key for o in OPTIONS}))
def test_every_option_is_described_on_the_page(key: str) -> None:
    assert f"| `{key}` |" in markdown()


def test_defaults_are_legal_values() -> None:
    options = [*OPTIONS, *(o for f in FORMATS.values() for o in f.options)]
    for option in options:
        if option.default is not None:
            option.parse(option.default)

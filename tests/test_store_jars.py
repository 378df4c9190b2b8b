"""Jars of an object store are fetched only where a pipeline names one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bridge.errors import BridgeError
from bridge.store_jars import fetch_store_jars, hadoop_version, schemes_of


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    asked: list[str] = []

    def fetch(name: str, coordinates: list[str], **how: Any) -> list[Path]:
        asked.extend(coordinates)
        return [Path(f"/jars/{name}.jar")]

    monkeypatch.setattr("bridge.jars.fetch", fetch)
    return asked


def test_schemes_are_those_of_stores_that_need_a_client() -> None:
    paths = [
        "s3a://b/t",
        "/local",
        None,
        "hdfs://n/t",
        "abfss://c@a.dfs.core.windows.net/t",
        "file:///t",
        "C:/t",
    ]
    assert schemes_of(paths) == {"s3a", "abfss"}


def test_the_version_is_that_of_sparks_hadoop() -> None:
    assert hadoop_version(["a-1.jar", "hadoop-client-api-3.4.2.jar"]) == "3.4.2"
    assert hadoop_version(["hadoop-client-api-3.4.1-amzn-2.jar"]) == "3.4.1"
    assert hadoop_version(["hadoop-client-runtime-3.4.2.jar"]) == ""


def test_nothing_is_fetched_for_nothing(fetched: list[str]) -> None:
    assert fetch_store_jars([], "3.4.2") == [] and fetched == []


def test_s3a_gets_hadoops_client_and_the_parts_of_the_sdk_that_it_uses(fetched: list[str]) -> None:
    assert fetch_store_jars(["s3a"], "3.4.2") == [Path("/jars/hadoop-aws.jar"), Path("/jars/aws-sdk.jar")]
    assert fetched[:2] == ["org.apache.hadoop:hadoop-aws:3.4.2", "software.amazon.awssdk:s3:2.29.52"]
    assert not [name for name in fetched if ":bundle:" in name]


@pytest.mark.parametrize(
    ("scheme", "hadoop", "words"),
    [
        (
            "abfss",
            "3.4.2",
            "abfss:// needs a client .* --packages org.apache.hadoop:hadoop-azure:3.4.2 to spark-sub",
        ),
        ("gs", "3.4.2", "gs:// needs a client .* --packages com.google.cloud.bigdataoss:gcs-connector:"),
        (
            "s3a",
            "3.3.6",
            r"version of Spark's Hadoop, 3.3.6, and the bridge knows the AWS SDK for 3.4.1 and 3.4.2 and 3.5.0",
        ),
        ("s3a", "", r"version of Spark's Hadoop, not known, and"),
    ],
)
def test_others_are_named_with_the_way_out(fetched: list[str], scheme: str, hadoop: str, words: str) -> None:
    with pytest.raises(BridgeError, match=words):
        fetch_store_jars([scheme], hadoop)
    assert fetched == []

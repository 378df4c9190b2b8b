"""The store of a place is found without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.lake.local_store import LocalStore
from bridge.lake.reached_store import reached_store
from bridge.lake.remote_store import RemoteStore
from bridge.store_options import given_settings
from bridge.ways import NotThisWay


def test_a_folder_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / "a%20b").mkdir()
    (tmp_path / "a%20b" / "f").write_bytes(b"1")
    for place in (f"{tmp_path}/a%20b", f"file:{tmp_path}/a%20b", f"file://{tmp_path}/a%20b"):
        found = reached_store(place)
        assert isinstance(found, LocalStore)
        assert found.read("f") == b"1"


def test_a_store_has_the_login_of_the_settings_and_does_not_show_it() -> None:
    with given_settings(lambda: {"spark.hadoop.fs.s3a.secret.key": "hidden-word"}):
        found = reached_store("s3a://bucket/table/")
    assert isinstance(found, RemoteStore)
    assert found.location == "s3a://bucket/table"
    assert found.options == {
        "aws_virtual_hosted_style_request": "true",
        "aws_conditional_put": "etag",
        "aws_secret_access_key": "hidden-word",
    }
    assert "hidden-word" not in repr(found)


def test_a_place_that_only_spark_reaches() -> None:
    with pytest.raises(NotThisWay, match=r"only Spark reads dbfs:"):
        reached_store("dbfs:/lake/orders")

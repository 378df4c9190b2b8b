"""Different paths and URIs of one location have the same canonical form."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.config.storage_locations import canonical_path


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/lake/orders", "/lake/orders/"),
        ("/lake/orders", "file:/lake/orders"),
        ("/lake/orders", "file:///lake//orders/."),
        ("/lake/orders", "FILE://localhost/lake/x/../orders"),
        ("s3://bucket/orders", "s3a://bucket/orders/"),
        ("s3n://bucket/orders", "S3A://bucket/x/../orders"),
        ("s3a://key:word@bucket/orders", "s3a://bucket/orders"),
        ("abfss://c@account.dfs.core.windows.net/t", "wasbs://c@account.blob.core.windows.net/t"),
        ("hdfs:///t", "hdfs://name:8020/t"),
        ("hdfs://name/t", "hdfs://name:8020/t"),
        ("dbfs:/lake/t", "/dbfs/lake/t"),
        ("dbfs:/Volumes/a/b/c", "/Volumes/a/b/c"),
    ],
)
def test_the_same_place(one: str, other: str) -> None:
    assert canonical_path(one).contains(canonical_path(other)) and canonical_path(other).contains(
        canonical_path(one)
    )


@pytest.mark.parametrize(
    ("outer", "inner"),
    [("/lake", "/lake/orders"), ("s3://b", "s3a://b/orders"), ("dbfs:/", "/dbfs/t"), ("/", "/t")],
)
def test_inside(outer: str, inner: str) -> None:
    assert canonical_path(outer).contains(canonical_path(inner)) and not canonical_path(inner).contains(
        canonical_path(outer)
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/lake/orders", "/lake/orders_quality"),
        ("s3://a/orders", "s3://b/orders"),
        ("s3://a/orders", "gs://a/orders"),
        ("/lake/orders", "dbfs:/lake/orders"),
        ("s3://a/orders", "s3://a/Orders"),
        ("abfss://c@one.dfs.core.windows.net/t", "abfss://c@two.dfs.core.windows.net/t"),
    ],
)
def test_outside(one: str, other: str) -> None:
    assert not canonical_path(one).contains(canonical_path(other)) and not canonical_path(other).contains(
        canonical_path(one)
    )


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "lake")
    (tmp_path / "broken").symlink_to(tmp_path / "none")
    lake = canonical_path(str(tmp_path / "lake"))
    assert lake.contains(canonical_path(str(tmp_path / "link" / "orders")))
    assert lake.contains(canonical_path(f"file:{tmp_path}/link/orders"))
    assert not lake.contains(canonical_path(str(tmp_path / "broken" / "orders")))


def test_a_mount_is_recognized_by_its_inode(tmp_path: Path) -> None:
    """As on a case-insensitive file system, which the disk of this test need not be."""
    for name in ("lake", "Lake"):
        (tmp_path / name).mkdir()
    inode = {str(tmp_path / "lake"): (1, 7), str(tmp_path / "Lake"): (1, 7)}.get
    lake = canonical_path(str(tmp_path / "lake"))
    assert lake.contains(canonical_path(str(tmp_path / "Lake" / "orders")), inode=inode)
    assert not lake.contains(canonical_path(str(tmp_path / "more" / "orders")), inode=inode)

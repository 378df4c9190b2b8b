"""Storage locations of a pipeline file must not be equal or inside one another.

Different paths and URIs of one location have the same canonical form.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.config.storage_locations import canonical_path
from bridge.errors import DefinitionError
from tests.config.files import DDL, HEAD, REST, WHOLE, loaded

QUALITY = "quality: {suite: suite.json"


def rest(table: str, checkpoint: str = "work", more: str = "") -> str:
    return WHOLE.replace(REST, f"delta: {{{table}}}\nrun: {{checkpoint: {checkpoint!r}}}\n{more}")


@pytest.mark.parametrize(
    ("table", "checkpoint", "more", "message"),
    [
        ("path: lake/ingest", "lake", "", "delta, .*/lake/ingest is inside run.checkpoint, .*/lake, so"),
        ("path: lake", "lake/work", "", "run.checkpoint, .*/lake/work is inside delta, .*/lake, so"),
        (
            "path: lake",
            "lake/",
            "",
            "run.checkpoint, .*/lake is the same location as delta, .*/lake; set them",
        ),
        ("path: lake", "x/../lake", "", "is the same location as"),
        ("path: 's3://b/lake'", "s3a://b/lake/", "", "is the same location as"),
        (
            "path: lake",
            "work",
            "ingest: {bad-records: quarantine, quarantine: {path: lake/_bad}}\n",
            "ingest.quarantine, .*/lake/_bad is inside delta",
        ),
        (
            "path: lake",
            "lake_quarantine",
            "ingest: {bad-records: quarantine}\n",
            "ingest.quarantine, .*_quarantine is the same location as run.checkpoint",
        ),
        (
            "table: a.b",
            "work",
            "ingest: {bad-records: quarantine, quarantine: {table: A.b}}\n",
            "ingest.quarantine, A.b is also delta, a.b",
        ),
        ("path: lake", "work", QUALITY + ", results: {path: .}}\n", "is inside quality.results"),
        (
            "path: lake",
            "work",
            "ingest: {bad-records: quarantine, quarantine: {path: bad}}\n"
            + QUALITY
            + ", results: {path: bad}}\n",
            "quality.results, .*/bad is the same location as ingest.quarantine",
        ),
        ("path: lake", "work", QUALITY + ", report: lake/x.html}\n", "quality.report, .* is inside delta"),
        ("path: lake", "work", QUALITY + ", report: work/x.html}\n", "quality.report, .* is inside run.ch"),
        (
            "path: reports",
            "work",
            QUALITY + "}\n",
            r"quality.report \(by default\), .*/reports/orders.html is inside delta",
        ),
        (
            "path: lake",
            "work",
            QUALITY + ", report: suite.json}\n",
            "quality.suite, .* is the same location as",
        ),
        (
            "path: lake",
            "work",
            QUALITY + ", report: orders.yaml}\n",
            "is the same location as the pipeline fi",
        ),
        (
            "path: lake",
            "suite.json",
            QUALITY + "}\n",
            "quality.suite, .* is the same location as run.checkpoint",
        ),
        (
            "path: suite.json/../lake",
            "work",
            "quality: {suite: lake/s.json}\n",
            "quality.suite, .* is inside d",
        ),
        ("path: .", "elsewhere/work", "", "is inside delta"),
    ],
)
def test_overlaps_are_refused(tmp_path: Path, table: str, checkpoint: str, more: str, message: str) -> None:
    with pytest.raises(DefinitionError, match=rf"orders.yaml:\d+: [a-z.-]+: .*{message}"):
        loaded(tmp_path, rest(table, checkpoint, more))


def test_an_overlap_through_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "link").symlink_to("lake")
    with pytest.raises(
        DefinitionError, match=r"orders.yaml:\d+: run.checkpoint: .*link/work is inside delta, "
    ):
        loaded(tmp_path, rest("path: lake", "link/work"))


def test_a_ddl_file_inside_the_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "o.sql").write_text(DDL)
    text = f"{HEAD}topic: {{ddl_file: lake/o.sql}}\n{REST}".replace("lake/orders", "lake")
    with pytest.raises(DefinitionError, match=r"delta: topic.ddl_file, .* is inside delta"):
        loaded(tmp_path, text, {"KAFKA": "broker:1"})


@pytest.mark.parametrize(
    ("table", "checkpoint", "more"),
    [
        ("path: lake/orders", "lake/_checkpoints/orders", ""),
        (
            "path: lake/orders",
            "lake/orders_checkpoint",
            "ingest: {bad-records: quarantine}\n" + QUALITY + "}\n",
        ),
        ("table: a.b", "work", "ingest: {bad-records: quarantine}\n" + QUALITY + ", report: r.html}\n"),
        ("path: lake", "work", "quality: {suite: work/suite.json}\n"),
        ("path: lake", "work", QUALITY + ", gate: 'off', report: lake.html}\n"),
    ],
)
def test_separate_locations_are_accepted(tmp_path: Path, table: str, checkpoint: str, more: str) -> None:
    loaded(tmp_path, rest(table, checkpoint, more))


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

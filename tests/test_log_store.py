"""Of several drivers that commit one version of a table on S3, one wins.

What a commit of Spark on a local disk names is on the disk before it.

Two drivers of Spark and a delta-rs writer commit to one table on S3 behind 20 ms a request.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from bridge.delta.delta_errors import error_names
from bridge.log_store import JAR, LOG_STORES, log_store_jar, log_store_settings
from tests.log_store.writer import Job
from tests.lossy_proxy import LossyProxy
from tests.object_store import BUCKET, ObjectStore

FILES = {"spark.delta.logStore.file.impl": LOG_STORES["file"]}
BOTH = FILES | {"spark.delta.logStore.s3a.impl": LOG_STORES["s3a"]}
DYNAMO = {"spark.delta.logStore.s3a.impl": "io.delta.storage.S3DynamoDBLogStore"}


@pytest.mark.parametrize(
    ("stores", "hadoop", "given", "wanted"),
    [
        (["s3a"], "3.4.2", {}, BOTH),
        (["s3a", "gs"], "3.5.0-vendor", {}, BOTH),
        (["gs"], "3.4.2", {}, FILES),
        ([], "3.4.2", {}, FILES),
        (["s3a"], "3.4.1", {}, FILES),
        (["s3a"], "", {}, FILES),
        (["s3a"], "3.4.2", DYNAMO, FILES),
        (["s3a"], "3.4.2", {"spark.delta.logStore.class": "com.example.OfMine"}, {}),
    ],
)
def test_a_log_store_that_a_user_has_chosen_stays(
    stores: list[str], hadoop: str, given: dict[str, str], wanted: dict[str, str]
) -> None:
    assert log_store_settings(stores, hadoop, given) == wanted


def test_of_a_bridge_in_a_zip_the_jar_is_unpacked(tmp_path: Path) -> None:
    """As spark-submit gives it to a driver on a cluster, by --py-files."""
    root = Path(__file__).parents[1]
    with zipfile.ZipFile(tmp_path / "bridge.zip", "w") as packed:
        for file in sorted((root / "bridge").glob("*.py")) + sorted(
            (root / "bridge" / "log_store").iterdir()
        ):
            if file.is_file():
                packed.write(file, file.relative_to(root))
    program = "from bridge.log_store import log_store_jar; print(log_store_jar())"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "bridge.zip"), "BRIDGE_HOME": str(tmp_path / "home"), "PATH": "/"},
        capture_output=True,
        text=True,
        check=True,
    )
    unpacked = Path(done.stdout.strip())
    assert unpacked.is_relative_to(tmp_path / "home")
    assert (
        unpacked.read_bytes()
        == log_store_jar().read_bytes()
        == (files("bridge.log_store") / JAR).read_bytes()
    )


def _commit(spark: SparkSession, path: str, *actions: str) -> bool:
    """Commit by the log store of the path's scheme; False where the version is there already."""
    jvm: Any = spark._jvm
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    name = LOG_STORES[path.partition(":")[0]].rpartition(".")[2]
    lines = jvm.java.util.ArrayList()
    for action in actions:
        lines.add(action)
    try:
        getattr(jvm.changelogbridge, name)(conf).write(
            jvm.org.apache.hadoop.fs.Path(path), lines.iterator(), False, conf
        )
    except Py4JJavaError as error:
        if "FileAlreadyExistsException" in error_names(error):
            return False
        raise
    return True


@pytest.fixture(params=["file", "s3a"])
def place(
    request: pytest.FixtureRequest, tmp_path: Path, unique: Callable[[str], str]
) -> tuple[str, Callable[[str], str]]:
    """The URI of an empty folder, and a function that reads a file in it."""
    if request.param == "file":
        return (tmp_path / "ta ble").as_uri().replace("%20", " "), lambda name: (
            tmp_path / "ta ble" / name
        ).read_text()
    server, folder = request.getfixturevalue("store"), unique("race")
    return f"s3a://{BUCKET}/{folder}", lambda name: str(server.text(f"{folder}/{name}"))


def test_of_many_commits_of_a_version_one_wins(
    spark: SparkSession, place: tuple[str, Callable[[str], str]]
) -> None:
    folder, read = place
    for version in range(5):
        name = f"_delta_log/{version:020}.json"
        with ThreadPoolExecutor(4) as pool:
            won = list(
                pool.map(
                    lambda n, name=name: _commit(spark, f"{folder}/{name}", f"größer {n}", "2"), range(4)
                )
            )
        assert won.count(True) == 1
        assert read(name) == f"größer {won.index(True)}\n2\n"
        assert not _commit(spark, f"{folder}/{name}", "later")


def test_sparks_commits_go_through_it(
    spark: SparkSession, store: ObjectStore, unique: Callable[[str], str]
) -> None:
    folder = unique("table")
    spark.range(3).write.format("delta").save(f"s3a://{BUCKET}/{folder}")
    (commit,) = [name for name in store.names(folder) if name.endswith("0.json")]
    assert "bridge-writer" in store.client().head_object(Bucket=BUCKET, Key=commit)["Metadata"]


@pytest.fixture
def proxy(
    store: ObjectStore, spark: SparkSession, unique: Callable[[str], str]
) -> Iterator[tuple[LossyProxy, str]]:
    """Before a bucket of its own."""
    bucket = unique("lossy").replace("_", "-").lower()
    store.client().create_bucket(Bucket=bucket)
    with LossyProxy("127.0.0.1", store.port) as running:
        for name, value in store.settings(bucket, running.url).items():
            spark.conf.set(name, value)
        yield running, bucket


def test_a_commit_whose_response_got_lost_has_succeeded(
    spark: SparkSession, store: ObjectStore, proxy: tuple[LossyProxy, str]
) -> None:
    """The client repeats the request, and S3 answers that the object is there."""
    lossy, bucket = proxy
    lossy.lose = 1
    assert _commit(spark, f"s3a://{bucket}/1.json", "first")
    assert lossy.lose == 0
    assert not _commit(spark, f"s3a://{bucket}/1.json", "first")
    store.client().put_object(Bucket=bucket, Key="2.json", Body=b"of another program")
    assert not _commit(spark, f"s3a://{bucket}/2.json", "second")


def test_without_conditional_requests_it_writes_nothing(
    spark: SparkSession, store: ObjectStore, proxy: tuple[LossyProxy, str]
) -> None:
    _, bucket = proxy
    spark.conf.set(f"fs.s3a.bucket.{bucket}.create.conditional.enabled", "false")
    spark.conf.set("fs.s3a.impl.disable.cache", "true")
    try:
        with pytest.raises(
            Py4JJavaError, match="makes no conditional requests, so a commit could overwrite another"
        ):
            _commit(spark, f"s3a://{bucket}/3.json", "third")
    finally:
        spark.conf.unset("fs.s3a.impl.disable.cache")
    assert store.client().list_objects_v2(Bucket=bucket)["KeyCount"] == 0


COMMITS = 2
CALL = re.compile(r'\b(?:fsync\(\d+<(?P<synced>[^>]+)>\)|link\("[^"]+", "(?P<linked>[^"]+)"\))')


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace, which shows what is synced, and when")
def test_files_are_synced_before_the_commit_that_names_them(tmp_path: Path) -> None:
    table, calls, go = tmp_path / "table", tmp_path / "calls", tmp_path / "go"
    go.touch()
    job = Job(
        str(table), first=0, commits=COMMITS, ready=str(tmp_path / "ready"), go=str(go), settings={}, new=True
    )
    traced = ["strace", "-f", "-qq", "-y", "-e", "trace=fsync,link", "-o", str(calls)]
    env = os.environ | {"SPARK_DRIVER_MEMORY": "700m", "BRIDGE_LOG": str(tmp_path / "bridge.log")}
    subprocess.run([*traced, *job.arguments()], env=env, stdin=subprocess.DEVNULL, check=True)
    synced: set[str] = set()
    commits = []
    for call in CALL.finditer(calls.read_text()):
        if call["synced"]:
            synced.add(call["synced"])
            continue
        commit = Path(call["linked"])
        actions = [json.loads(line) for line in commit.read_text().splitlines()]
        added = [str(table / action["add"]["path"]) for action in actions if "add" in action]
        assert added and {*added, str(table)} <= synced
        commits.append(commit.name)
        synced = set()
    assert commits == [f"{version:020}.json" for version in range(COMMITS)]
    assert str(table / "_delta_log") in synced, "the name of the last commit"


SEVERAL_WRITERS_COMMITS = 100


def _write(
    folder: Path,
    server: ObjectStore,
    name: str,
    *,
    drivers: int,
    delta_rs: bool,
    log_store: str | None = None,
) -> tuple[set[int], set[int]]:
    """The ids that the writers were told are committed, and those in the table."""
    import pyarrow as pa

    table, go = f"s3a://{BUCKET}/{name}", folder / f"{name}.go"
    own = server.delta_rs_options() | {"aws_conditional_put": "etag"}
    write_deltalake(
        f"s3://{BUCKET}/{name}", pa.table({"id": pa.array([-1], pa.int64())}), storage_options=own
    )
    with LossyProxy("127.0.0.1", server.port, delay=0.02) as slow:
        jobs = [
            Job(
                table,
                first=1000 * n,
                commits=SEVERAL_WRITERS_COMMITS,
                ready=str(folder / f"{name}.{n}"),
                go=str(go),
                spark=n < drivers,
                settings=server.settings(url=slow.url) if n < drivers else own | {"aws_endpoint": slow.url},
                log_store=log_store,
            )
            for n in range(drivers + delta_rs)
        ]
        env = os.environ | {"SPARK_DRIVER_MEMORY": "700m", "BRIDGE_LOG": str(folder / "bridge.log")}
        running = [subprocess.Popen(job.arguments(), env=env, stdin=subprocess.DEVNULL) for job in jobs]
        deadline = time.monotonic() + 900
        while not all(Path(job.ready).exists() for job in jobs):
            assert time.monotonic() < deadline and all(one.poll() in (None, 0) for one in running)
            time.sleep(0.1)
        go.touch()
        assert [one.wait(timeout=1700) for one in running] == [0] * len(jobs)
    told = {number for job in jobs for number in range(job.first, job.first + job.commits)}
    rows = DeltaTable(f"s3://{BUCKET}/{name}", storage_options=own).to_pyarrow_table()
    return told, set(rows["id"].to_pylist()) - {-1}


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_no_commit_is_lost(tmp_path: Path, object_store: ObjectStore) -> None:
    told, found = _write(tmp_path, object_store, "ours", drivers=2, delta_rs=True)
    assert len(told) == 3 * SEVERAL_WRITERS_COMMITS
    assert found == told


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_with_deltas_own_store_commits_are_lost(tmp_path: Path, object_store: ObjectStore) -> None:
    """The control: the test above can fail."""
    single = "io.delta.storage.S3SingleDriverLogStore"
    told, found = _write(tmp_path, object_store, "control", drivers=2, delta_rs=False, log_store=single)
    assert found < told

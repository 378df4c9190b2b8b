"""Small objects on S3, by the store of the tables: written once by conditional requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.sql import SparkSession

from bridge.errors import BridgeError
from bridge.small_files import SmallFiles, TextFile
from tests.lossy_proxy import LossyProxy
from tests.object_store import ObjectStore, only_on_s3


def write_once(spark: SparkSession, path: str, text: str) -> bool:
    folder, _, name = path.rpartition("/")
    return SmallFiles(spark, folder).put_if_absent(name, text)


@pytest.fixture
def bucket(store: ObjectStore, unique: Callable[[str], str]) -> str:
    """A folder of its own in the bucket."""
    return f"{store.root}/{unique('once')}"


def test_of_many_writers_to_s3_one_wins(spark: SparkSession, store: ObjectStore, bucket: str) -> None:
    for number in range(5):
        path = f"{bucket}/a/{number}.json"
        with ThreadPoolExecutor(4) as pool:
            won = list(pool.map(lambda n, p=path: write_once(spark, p, f"größer {n}"), range(4)))
        assert won.count(True) == 1
        assert TextFile(spark, path).read() == f"größer {won.index(True)}"
        assert not write_once(spark, path, "later")
    assert len(store.names(bucket.removeprefix(f"{store.root}/"))) == 5


@pytest.fixture
def proxy(store: ObjectStore, spark: SparkSession) -> Iterator[LossyProxy]:
    """Before the bucket `lossy`."""
    only_on_s3(store)
    store.client().create_bucket(Bucket="lossy")
    with LossyProxy("127.0.0.1", store.port) as running:
        for name, value in store.settings("lossy", running.url).items():
            spark.conf.set(name, value)
        yield running


def test_an_object_whose_response_got_lost_is_the_writer_s_own(
    spark: SparkSession, store: ObjectStore, proxy: LossyProxy
) -> None:
    """The client repeats the request, and S3 answers that the object is there."""
    proxy.lose = 1
    assert write_once(spark, "s3a://lossy/1.json", "first")
    assert proxy.lose == 0
    assert not write_once(spark, "s3a://lossy/1.json", "first")
    store.client().put_object(Bucket="lossy", Key="2.json", Body=b"of another program")
    assert not write_once(spark, "s3a://lossy/2.json", "second")


def test_without_conditional_requests_s3_is_refused(spark: SparkSession, store: ObjectStore) -> None:
    only_on_s3(store)
    store.client().create_bucket(Bucket="unconditional")
    for name, value in store.settings("unconditional").items():
        spark.conf.set(name, value)
    spark.conf.set("fs.s3a.bucket.unconditional.create.conditional.enabled", "false")
    with pytest.raises(BridgeError) as refused:
        write_once(spark, "s3a://unconditional/1.json", "first")
    version = spark._jvm.org.apache.hadoop.util.VersionInfo.getVersion()  # type: ignore[union-attr]
    assert str(refused.value) == (
        f"s3a://unconditional/1.json: of two runs that start at once one must win, for which Hadoop {version} has no "
        "request on s3a:// (it needs 3.4.2 or newer, which Spark 4.1 has, and fs.s3a.create.conditional.enabled not "
        "switched off); put run.checkpoint into another store"
    )
    assert store.client().list_objects_v2(Bucket="unconditional")["KeyCount"] == 0

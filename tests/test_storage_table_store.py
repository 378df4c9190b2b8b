"""The options of delta-rs say what Hadoop's settings say, or the table is left to Spark."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from bridge.lake.local_store import LocalStore
from bridge.lake.remote_store import RemoteStore
from bridge.storage import store_at
from bridge.ways import NotThisWay

pytestmark = pytest.mark.versions

PREFIX = "fs.s3a.bucket.named."
TABLE = "s3a://named/lake/orders"


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    return spark.newSession()


def options(session: SparkSession, **settings: str) -> dict[str, str]:
    for name, value in settings.items():
        session.conf.set(PREFIX + name.replace("_", "."), value)
    store = store_at(session, TABLE)
    assert isinstance(store, RemoteStore) and store.location == TABLE and "hidden" not in repr(store)
    return dict(store.options)


def test_without_settings_both_use_the_defaults_of_s3(session: SparkSession) -> None:
    assert options(session) == {"aws_conditional_put": "etag", "aws_virtual_hosted_style_request": "true"}


def test_endpoint_and_credentials_are_those_of_the_bucket(session: SparkSession) -> None:
    session.conf.set("fs.s3a.access.key", "of another bucket")
    found = options(
        session,
        endpoint="http://minio:9000",
        endpoint_region="eu-central-1",
        path_style_access="true",
        access_key="k",
        secret_key="s",
        session_token="t",
    )
    assert found == {
        "aws_conditional_put": "etag",
        "aws_endpoint": "http://minio:9000",
        "aws_allow_http": "true",
        "aws_region": "eu-central-1",
        "aws_virtual_hosted_style_request": "false",
        "aws_access_key_id": "k",
        "aws_secret_access_key": "s",
        "aws_session_token": "t",
    }


def test_an_endpoint_without_a_scheme_has_hadoops(session: SparkSession) -> None:
    assert options(session, endpoint="minio:9000")["aws_endpoint"] == "https://minio:9000"
    found = options(session, connection_ssl_enabled="false")
    assert (found["aws_endpoint"], found["aws_allow_http"]) == ("http://minio:9000", "true")


def test_an_anonymous_login_signs_nothing(session: SparkSession) -> None:
    provider = "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
    assert options(session, aws_credentials_provider=provider)["aws_skip_signature"] == "true"


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        (
            "encryption_algorithm",
            "SSE-KMS",
            "fs.s3a.encryption.algorithm is set, which delta-rs does not follow",
        ),
        ("proxy_host", "proxy", "fs.s3a.proxy.host is set, which delta-rs does not follow"),
        (
            "aws_credentials_provider",
            "com.example.Vault",
            "credentials come from com.example.Vault, which delta-rs does not have",
        ),
    ],
)
def test_what_delta_rs_does_not_follow_is_left_to_spark(
    session: SparkSession, name: str, value: str, why: str
) -> None:
    with pytest.raises(NotThisWay) as refused:
        options(session, secret_key="hidden", access_key="hidden", **{name: value})
    assert str(refused.value) == why


def test_a_folder_of_this_disk_and_other_stores(session: SparkSession) -> None:
    assert store_at(session, "file:/lake/a b#c") == LocalStore("/lake/a b#c")
    with pytest.raises(NotThisWay, match=r"^the table is stored in hdfs, which only Spark reaches$"):
        store_at(session, "hdfs://host/lake")

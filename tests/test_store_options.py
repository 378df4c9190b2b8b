"""Which options delta-rs gets for a file on a store: Spark's settings of its bucket, else what the environment has."""

from __future__ import annotations

import pytest

from bridge.store_options import file_options, given_settings, s3_options

RETRIES = {"max_retries": "3", "retry_timeout": "30s"}


@pytest.fixture(autouse=True)
def no_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)


def test_without_settings_the_environment_decides() -> None:
    assert file_options("s3a://b/o.yaml") == RETRIES
    assert file_options("abfss://c@a/o.yaml") == RETRIES
    assert file_options("/conf/orders.yaml") == {}


def test_an_endpoint_of_the_environment_may_be_http(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://minio:9000")
    assert file_options("s3a://b/o.yaml") == {**RETRIES, "aws_allow_http": "true"}


def test_settings_of_the_bucket_win_over_general_ones() -> None:
    settings = {
        "spark.hadoop.fs.s3a.endpoint": "minio:9000",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        "spark.hadoop.fs.s3a.access.key": "general",
        "spark.hadoop.fs.s3a.bucket.b.access.key": "own",
        "spark.hadoop.fs.s3a.bucket.b.path.style.access": " TRUE",
        "spark.app.name": "x",
    }
    with given_settings(lambda: settings):
        found, other = file_options("s3a://b/o.yaml"), file_options("s3://c/o.yaml")
        assert file_options("gs://b/o.yaml") == RETRIES
    assert found == {
        **RETRIES,
        "aws_endpoint": "http://minio:9000",
        "aws_allow_http": "true",
        "aws_virtual_hosted_style_request": "false",
        "aws_access_key_id": "own",
    }
    assert other["aws_access_key_id"] == "general"
    assert other["aws_virtual_hosted_style_request"] == "true"
    assert file_options("s3a://b/o.yaml") == RETRIES


def test_settings_are_asked_for_with_the_first_file() -> None:
    def unwanted() -> dict[str, str]:
        raise AssertionError("nobody needs them")

    with given_settings(unwanted):
        assert file_options("/conf/orders.yaml") == {}


def test_anonymous_requests_have_no_login() -> None:
    conf = {
        "fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider",
        "fs.s3a.access.key": "k",
    }
    assert s3_options(conf.get, conf.get) == {
        "aws_virtual_hosted_style_request": "true",
        "aws_skip_signature": "true",
    }

"""A local S3 server (moto's), a process of its own, and how Spark and a plain client reach it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from bridge.embedded.processes import HOST, Server, free_port

BUCKET = "lake"
KEY, SECRET = "the-access-key-of-tests", "the-secret-key-of-tests"


class ObjectStore(Server):
    """A context manager with one bucket, `BUCKET`. The server keeps objects in memory."""

    title, start_seconds, stop_seconds, home = "S3 server", 60.0, 10.0, Path(__file__).parents[1]
    root = f"s3a://{BUCKET}"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "s3.log", free_port())
        self.url = f"http://{HOST}:{self.port}"

    @property
    def address(self) -> str:
        return self.url

    def prepare(self) -> list[str]:
        return [sys.executable, "-m", "tests.s3_server", "-H", HOST, "-p", str(self.port)]

    def is_up(self) -> bool:
        try:
            self.client().create_bucket(Bucket=BUCKET)
        except Exception as error:
            raise OSError from error
        return True

    def client(self) -> Any:
        """A client of AWS's own SDK for Python."""
        import boto3
        from botocore.config import Config

        return boto3.client(
            "s3",
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1}),
        )

    def settings(self, bucket: str = BUCKET, url: str | None = None) -> dict[str, str]:
        """Hadoop's settings for a bucket, as a session's configuration takes them. `url`: of a proxy before it."""
        own = {
            "endpoint": url or self.url,
            "endpoint.region": "us-east-1",
            "path.style.access": "true",
            "access.key": KEY,
            "secret.key": SECRET,
        }
        return {f"fs.s3a.bucket.{bucket}.{name}": value for name, value in own.items()}

    def delta_rs_options(self) -> dict[str, str]:
        """The options of delta-rs for this server, with a login of their own."""
        return {
            "aws_endpoint": self.url,
            "aws_allow_http": "true",
            "aws_region": "us-east-1",
            "aws_access_key_id": KEY,
            "aws_secret_access_key": SECRET,
        }

    def put(self, name: str, data: bytes) -> None:
        """Write an object."""
        self.client().put_object(Bucket=BUCKET, Key=name, Body=data)

    def names(self, prefix: str) -> list[str]:
        """The names of all objects below a prefix, in their order."""
        pages = self.client().get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        return [entry["Key"] for page in pages for entry in page.get("Contents", ())]

    def text(self, name: str) -> str:
        """The content of an object."""
        return str(self.client().get_object(Bucket=BUCKET, Key=name)["Body"].read().decode())


def only_on_s3(store: object) -> None:
    """Skip a test that needs S3 where the tests run on another store."""
    if not isinstance(store, ObjectStore):
        pytest.skip("needs S3")

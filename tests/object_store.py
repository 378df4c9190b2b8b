"""A local S3 server (moto's), a process of its own, and how Spark and a plain client reach it."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from bridge.embedded.processes import HOST, free_port, start_watchdog, stop_process

BUCKET = "lake"
KEY, SECRET = "the-access-key-of-tests", "the-secret-key-of-tests"
_SECONDS = 60.0
_ROOT = Path(__file__).parents[1]


class ObjectStore:
    """A context manager with one bucket, `BUCKET`. The server keeps objects in memory."""

    root = f"s3a://{BUCKET}"

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.url = f"http://{HOST}:{self.port}"
        self._log = folder / "s3.log"

    def __enter__(self) -> ObjectStore:
        self._log.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "tests.s3_server", "-H", HOST, "-p", str(self.port)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=_ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self._watchdog = start_watchdog(self._process.pid)
        deadline = time.monotonic() + _SECONDS
        while True:
            try:
                self.client().create_bucket(Bucket=BUCKET)
                return self
            except Exception:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise AssertionError(self._log.read_text()[-2000:]) from None
                time.sleep(0.1)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stop_process(self._process, self._watchdog, 10)

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

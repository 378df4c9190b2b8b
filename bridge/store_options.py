"""How delta-rs reaches an object store: from Hadoop's settings for S3A, with the same bucket and the same login.

The options hold secrets: they are never logged, and never part of an error. Sources: Hadoop's "Hadoop-AWS module"
(`fs.s3a.*`, for one bucket `fs.s3a.bucket.NAME.*`) and `AmazonS3ConfigKey` of the Rust library object_store.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from urllib.parse import urlsplit

__all__ = ["ANONYMOUS", "PROVIDERS", "file_options", "given_settings", "misread_name", "s3_options"]

ANONYMOUS = "AnonymousAWSCredentialsProvider"
"""Hadoop's provider for requests without a login."""
PROVIDERS = "fs.s3a.aws.credentials.provider"
"""Hadoop's setting for the classes that find a login."""
_DEFAULT_ENDPOINT = "s3.amazonaws.com"
_LOGIN = {
    "fs.s3a.access.key": "aws_access_key_id",
    "fs.s3a.secret.key": "aws_secret_access_key",
    "fs.s3a.session.token": "aws_session_token",
}
_OF_SPARK = "spark.hadoop."
_MISREAD = re.compile(r"%[0-9A-Fa-f]{2}|\\")
"""In the name of a folder."""

Settings = Callable[[], Mapping[str, str]]
_given: ContextVar[Settings] = ContextVar("settings of Spark for files on object stores", default=dict)


@contextmanager
def given_settings(settings: Settings) -> Iterator[None]:
    """Within the block, files on object stores are read with Spark's `settings`, asked for with the first such file."""
    before = _given.set(settings)
    try:
        yield
    finally:
        _given.reset(before)


def misread_name(folder: str) -> str | None:
    """Why delta-rs does not find a folder of this machine; None if it does.

    With an escape of a URI in a name, it looks into the folder whose name the escape means."""
    found = _MISREAD.search(folder)
    return found and f"the path has {found[0]!r} in a name, which delta-rs takes for another one"


def file_options(uri: str) -> dict[str, str]:
    """Return the options with which delta-rs reads what is at `uri`: of the settings given, those for its store; {} for
    a path of this machine.

    What they leave open (all of it for stores other than S3) delta-rs looks up itself: in the environment, a profile,
    the instance or the container.
    """
    parts = urlsplit(uri)
    if not parts.netloc:
        return {}
    options = {"max_retries": "3", "retry_timeout": "30s"}
    if parts.scheme not in ("s3", "s3a"):
        return options
    conf = {
        key.removeprefix(_OF_SPARK): value
        for key, value in _given.get()().items()
        if key.startswith(f"{_OF_SPARK}fs.s3a.")
    }

    def of_bucket(name: str) -> str | None:
        own = f"fs.s3a.bucket.{parts.netloc}.{name.removeprefix('fs.s3a.')}"
        return conf.get(own, conf.get(name))

    if conf:
        options |= s3_options(of_bucket, of_bucket)
    if "aws_endpoint" not in options and os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://"):
        options["aws_allow_http"] = "true"
    return options


def s3_options(get: Callable[[str], str | None], password: Callable[[str], str | None]) -> dict[str, str]:
    """Return endpoint, region and login as options of delta-rs; `get` and `password` look up settings of one bucket."""
    options = {}
    endpoint = (get("fs.s3a.endpoint") or "").strip()
    if endpoint and endpoint != _DEFAULT_ENDPOINT:
        secure = _is_on(get("fs.s3a.connection.ssl.enabled"), default=True)
        url = endpoint if "://" in endpoint else f"{'https' if secure else 'http'}://{endpoint}"
        options["aws_endpoint"] = url
        if url.startswith("http://"):
            options["aws_allow_http"] = "true"
    if region := (get("fs.s3a.endpoint.region") or "").strip():
        options["aws_region"] = region
    by_path = _is_on(get("fs.s3a.path.style.access"), default=False)
    options["aws_virtual_hosted_style_request"] = "false" if by_path else "true"
    if any(name.strip().endswith(ANONYMOUS) for name in (get(PROVIDERS) or "").split(",")):
        return {**options, "aws_skip_signature": "true"}
    found = {option: password(name) for name, option in _LOGIN.items()}
    return options | {option: secret.strip() for option, secret in found.items() if secret}


def _is_on(text: str | None, *, default: bool) -> bool:
    """As Hadoop reads a setting that is true or false."""
    return {"true": True, "false": False}.get((text or "").strip().lower(), default)

"""Lets delta-rs reach a table that Spark reads and writes through Hadoop's S3A client: same bucket, same login.

Only what the options of delta-rs can say the same way is translated. Where a setting of Hadoop means a request that
delta-rs would make otherwise (encryption, a proxy, an assumed role, a provider of credentials of one's own), the table
is left to Spark. The options hold secrets: they are never logged, and never part of an error.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from bridge.delta.merge_contract import UnsupportedByEngine
from bridge.store_options import ANONYMOUS, PROVIDERS, s3_options

__all__ = ["storage_options"]

_KNOWN_PROVIDERS = (
    "TemporaryAWSCredentialsProvider",
    "SimpleAWSCredentialsProvider",
    "EnvironmentVariableCredentialsProvider",
    "IAMInstanceCredentialsProvider",
    ANONYMOUS,
)
"""Providers of credentials that delta-rs has, too, under other names."""
_SPARK_ALONE = (
    "accesspoint.arn",
    "assumed.role.arn",
    "custom.signers",
    "encryption.algorithm",
    "proxy.host",
    "requester.pays.enabled",
    "server-side-encryption-algorithm",
    "signing-algorithm",
)


def storage_options(spark: SparkSession, location: str) -> dict[str, str]:
    """Return the options with which delta-rs opens `location`, a URI `s3a://bucket/…`.

    Commits are conditional: of two writers of one version one wins. Credentials that Hadoop has not are looked up by
    delta-rs itself, in the environment, the instance or the container. Raises UnsupportedByEngine for a setting that
    delta-rs would not follow.
    """
    bucket = urlsplit(location).netloc
    conf = _bucket_conf(spark, bucket)
    for name in _SPARK_ALONE:
        if (conf.get(f"fs.s3a.{name}") or "").strip().lower() not in ("", "false"):
            raise UnsupportedByEngine(f"fs.s3a.{name} is set, which delta-rs does not follow")
    for provider in filter(None, (name.strip() for name in (conf.get(PROVIDERS) or "").split(","))):
        if provider.rpartition(".")[2] not in _KNOWN_PROVIDERS:
            raise UnsupportedByEngine(f"credentials come from {provider}, which delta-rs does not have")

    def password(name: str) -> str | None:
        secret = conf.getPassword(name)  # as Hadoop does, from its credential stores, too
        return "".join(secret) if secret else None

    return {"aws_conditional_put": "etag", **s3_options(conf.get, password)}


def _bucket_conf(spark: SparkSession, bucket: str) -> Any:
    """Hadoop's settings, those of the bucket in place of the general ones."""
    jvm: Any = spark._jvm
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    return jvm.org.apache.hadoop.fs.s3a.S3AUtils.propagateBucketOptions(conf, bucket)

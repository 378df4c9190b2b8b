"""Lets delta-rs reach a table that Spark reads and writes through Hadoop's S3A client: same bucket, same login.

Only what the options of delta-rs can say the same way is translated. Where a setting of Hadoop means a request that
delta-rs would make otherwise (encryption, a proxy, an assumed role, a provider of credentials of one's own), the table
is left to Spark. The options hold secrets: they are never logged, and never part of an error.

Sources: Hadoop's "Hadoop-AWS module" (`fs.s3a.*`, for one bucket `fs.s3a.bucket.NAME.*`) and `AmazonS3ConfigKey` of
the Rust library object_store.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from bridge.delta.merge_contract import UnsupportedByEngine

__all__ = ["storage_options"]

_ANONYMOUS = "AnonymousAWSCredentialsProvider"
_PROVIDERS = (
    "TemporaryAWSCredentialsProvider",
    "SimpleAWSCredentialsProvider",
    "EnvironmentVariableCredentialsProvider",
    "IAMInstanceCredentialsProvider",
    _ANONYMOUS,
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
_DEFAULT_ENDPOINT = "s3.amazonaws.com"


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
    options = {"aws_conditional_put": "etag"}
    options |= _endpoint(conf)
    options |= _credentials(conf)
    return options


def _bucket_conf(spark: SparkSession, bucket: str) -> Any:
    """Hadoop's settings, those of the bucket in place of the general ones."""
    jvm: Any = spark._jvm
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    return jvm.org.apache.hadoop.fs.s3a.S3AUtils.propagateBucketOptions(conf, bucket)


def _endpoint(conf: Any) -> dict[str, str]:
    options = {}
    endpoint = (conf.get("fs.s3a.endpoint") or "").strip()
    if endpoint and endpoint != _DEFAULT_ENDPOINT:
        secure = conf.getBoolean("fs.s3a.connection.ssl.enabled", True)
        url = endpoint if "://" in endpoint else f"{'https' if secure else 'http'}://{endpoint}"
        options["aws_endpoint"] = url
        if url.startswith("http://"):
            options["aws_allow_http"] = "true"
    if region := (conf.get("fs.s3a.endpoint.region") or "").strip():
        options["aws_region"] = region
    by_path = conf.getBoolean("fs.s3a.path.style.access", False)
    options["aws_virtual_hosted_style_request"] = "false" if by_path else "true"
    return options


def _credentials(conf: Any) -> dict[str, str]:
    providers = [name.strip() for name in (conf.get("fs.s3a.aws.credentials.provider") or "").split(",")]
    for provider in filter(None, providers):
        if provider.rpartition(".")[2] not in _PROVIDERS:
            raise UnsupportedByEngine(f"credentials come from {provider}, which delta-rs does not have")
    if any(provider.endswith(_ANONYMOUS) for provider in providers):
        return {"aws_skip_signature": "true"}
    names = {
        "fs.s3a.access.key": "aws_access_key_id",
        "fs.s3a.secret.key": "aws_secret_access_key",
        "fs.s3a.session.token": "aws_session_token",
    }
    # As Hadoop does, from its credential stores, too.
    found = {option: conf.getPassword(name) for name, option in names.items()}
    return {option: "".join(secret).strip() for option, secret in found.items() if secret}

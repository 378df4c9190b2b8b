"""Finds the store that has the files of a table, as the driver and the tasks reach it: same place, same login as Spark.

Only what the options of the library object_store can say the same way is translated. Where a setting of Hadoop means a
request that the library would make otherwise (encryption, a proxy, an assumed role, a provider of credentials of one's
own), the table is left to Spark. The options hold secrets: they are never logged, and never part of an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from pyspark.sql import SparkSession

from bridge.lake.local_store import LocalStore
from bridge.lake.remote_store import RemoteStore
from bridge.store_options import ANONYMOUS, PROVIDERS, misread_name, s3_options
from bridge.ways import NotThisWay

if TYPE_CHECKING:
    from deltalake import DeltaTable

__all__ = ["opened_store", "scheme_of", "store_at", "store_for_writing"]

_KNOWN_PROVIDERS = (
    "TemporaryAWSCredentialsProvider",
    "SimpleAWSCredentialsProvider",
    "EnvironmentVariableCredentialsProvider",
    "IAMInstanceCredentialsProvider",
    ANONYMOUS,
)
"""Providers of credentials that the library has, too, under other names."""
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


def store_at(spark: SparkSession, location: str) -> LocalStore | RemoteStore:
    """The store of a table by its `Table.location`.

    On S3, credentials that Hadoop has not are looked up by the library itself: in the environment, the instance or the
    container. Raises NotThisWay for a location that only Spark reaches.
    """
    scheme, _, path = location.partition(":")
    if scheme == "file":
        # A Path of Hadoop as a text, in which no character is escaped: `%20`, `?` and `#` are in a name.
        return LocalStore(f"/{path.lstrip('/')}")
    if scheme == "s3a":
        return RemoteStore(location.rstrip("/"), _s3_options(spark, location))
    raise NotThisWay(f"the table is stored in {scheme_of(location)}, not in local files or on s3a://")


def store_for_writing(spark: SparkSession, location: str) -> LocalStore | RemoteStore:
    """Do as `store_at` for a table that is written in the driver. Raises NotThisWay, too, for a path that
    delta-rs, which writes the checkpoints, takes for another one."""
    store = store_at(spark, location)
    if isinstance(store, LocalStore) and (misread := misread_name(store.folder)):
        raise NotThisWay(misread)
    return store


def scheme_of(location: str) -> str:
    """The file system of `Table.location`, for messages."""
    scheme, colon, _ = location.partition(":")
    return scheme if colon else "an unknown file system"


def opened_store(target: DeltaTable) -> LocalStore | RemoteStore:
    """The store of a table that delta-rs has opened."""
    uri = urlsplit(target.table_uri)
    if uri.scheme in ("", "file"):
        return LocalStore(unquote(uri.path).rstrip("/"))
    return RemoteStore(target.table_uri.rstrip("/"), target._storage_options or {})


def _s3_options(spark: SparkSession, location: str) -> dict[str, str]:
    bucket = urlsplit(location).netloc
    conf = _bucket_conf(spark, bucket)
    for name in _SPARK_ALONE:
        if (conf.get(f"fs.s3a.{name}") or "").strip().lower() not in ("", "false"):
            raise NotThisWay(f"fs.s3a.{name} is set, which delta-rs does not follow")
    for provider in filter(None, (name.strip() for name in (conf.get(PROVIDERS) or "").split(","))):
        if provider.rpartition(".")[2] not in _KNOWN_PROVIDERS:
            raise NotThisWay(f"credentials come from {provider}, which delta-rs does not have")

    def password(name: str) -> str | None:
        secret = conf.getPassword(name)  # as Hadoop does, from its credential stores, too
        return "".join(secret) if secret else None

    return {"aws_conditional_put": "etag", **s3_options(conf.get, password)}


def _bucket_conf(spark: SparkSession, bucket: str) -> Any:
    """Hadoop's settings, those of the bucket in place of the general ones."""
    jvm: Any = spark._jvm
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    return jvm.org.apache.hadoop.fs.s3a.S3AUtils.propagateBucketOptions(conf, bucket)

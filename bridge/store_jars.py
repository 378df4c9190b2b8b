"""Which jars Hadoop needs for the object stores that a pipeline names; none where it names none.

For `s3a://` the bridge fetches them: hadoop-aws in the version of Spark's Hadoop, and of the AWS SDK the modules that
it uses, 17 MB, instead of the bundle of 600 MB that its pom names. The clients of other stores are for users to give.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import Path
from urllib.parse import urlsplit

from bridge import jars
from bridge.errors import BridgeError

STORES = {
    "s3a": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    "abfs": "org.apache.hadoop.fs.azurebfs.AzureBlobFileSystem",
    "abfss": "org.apache.hadoop.fs.azurebfs.SecureAzureBlobFileSystem",
    "gs": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",
}
"""The class of each store's client."""
_GIVEN = {
    "abfs": "org.apache.hadoop:hadoop-azure:{hadoop}",
    "abfss": "org.apache.hadoop:hadoop-azure:{hadoop}",
    "gs": "com.google.cloud.bigdataoss:gcs-connector:3.0.13",
}
"""The packages that users give for stores of which the bridge fetches nothing."""
_SDK = {"3.4.1": "2.24.6", "3.4.2": "2.29.52", "3.5.0": "2.35.5"}
"""The AWS SDK that each hadoop-aws was built with; for 3.5.0 a patch later, as registries lack a module of 2.35.4."""
_READERS = {"3.5.0": "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:1.3.1"}
"""What reads files from S3 by default, where hadoop-aws has it in a jar of its own."""
_SDK_MODULES = (
    "s3",
    "s3-transfer-manager",
    "sts",
    "kms",
    "apache-client",
    "netty-nio-client",
    "crt-core",
)


def schemes_of(paths: Iterable[str | None]) -> frozenset[str]:
    """Return the schemes of `STORES` among those of `paths`."""
    return frozenset(urlsplit(path).scheme for path in paths if path) & STORES.keys()


def hadoop_version(shipped: Iterable[str]) -> str:
    """Return the version of Hadoop among the names of Spark's own jars; empty if it is not there."""
    found = (re.fullmatch(r"hadoop-client-api-([\d.]+\d)\S*\.jar", name) for name in shipped)
    return next((match[1] for match in found if match), "")


def fetch_store_jars(schemes: Collection[str], hadoop: str) -> list[Path]:
    """Return the jars for the stores that a Spark with this version of Hadoop lacks, fetched once.

    Raises BridgeError for a store, or a Hadoop, for which the bridge knows no jars, with the packages to give.
    """
    found = []
    for scheme in sorted(schemes):
        if scheme != "s3a":
            raise BridgeError(
                f"{scheme}:// needs a client that is not on Spark's class path: add --packages "
                f"{_GIVEN[scheme].format(hadoop=hadoop)} to spark-submit, or "
                f"--conf spark.jars.packages={_GIVEN[scheme].format(hadoop=hadoop)} to the command"
            )
        if hadoop not in _SDK:
            raise BridgeError(
                f"s3a:// needs org.apache.hadoop:hadoop-aws in the version of Spark's Hadoop, {hadoop or 'not known'}, "
                f"and the bridge knows the AWS SDK for {' and '.join(_SDK)}: add --packages or --jars with both"
            )
        found += jars.fetch("hadoop-aws", [f"org.apache.hadoop:hadoop-aws:{hadoop}"], transitive=False)
        sdk = [f"software.amazon.awssdk:{module}:{_SDK[hadoop]}" for module in _SDK_MODULES]
        found += jars.fetch("aws-sdk", sdk, beside_spark=True)
        if hadoop in _READERS:
            found += jars.fetch("s3-reader", [_READERS[hadoop]], transitive=False)
    return found

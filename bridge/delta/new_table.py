"""Creates a table by writing its first commit, without Spark.

Delta's builder needs seconds for it in a new process. What it would write is known for the tables that the bridge
makes: without clustering, and without a property of Delta but those that the bridge sets. Others are left to it.

Format: "Delta Transaction Log Protocol" (PROTOCOL.md), actions `commitInfo`, `metaData` and `protocol`.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from bridge.definition import DeltaTarget
from bridge.delta.log_description import log_store
from bridge.lake.commit import write_commit
from bridge.lake.store import UnknownOutcome
from bridge.version import own_version
from bridge.ways import NotThisWay

_KNOWN = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true"}
"""The properties of Delta that a table must have, and no others: they decide its protocol."""
_DEFAULTS = (
    "spark.databricks.delta.properties.defaults.",
    "spark.databricks.delta.min",
    "spark.databricks.delta.schema.",
)
"""How settings of a session begin that change what Delta's builder writes."""
_TYPES = (
    T.BooleanType,
    T.ByteType,
    T.ShortType,
    T.IntegerType,
    T.LongType,
    T.FloatType,
    T.DoubleType,
    T.DecimalType,
    T.BinaryType,
    T.DateType,
    T.TimestampType,
    T.TimestampNTZType,
)


def create_by_commit(
    spark: SparkSession, target: DeltaTarget, fields: Sequence[T.StructField], properties: Mapping[str, str]
) -> bool:
    """Create the table with these columns, all nullable, if its folder has none; False where Delta's builder must do
    it, which leaves a table that is there. Of several writers at once one creates it. Raises OSError where the disk
    does not allow it."""
    store = log_store(spark, target)
    is_known = (
        store is not None
        and not target.cluster_by
        and {name: value for name, value in properties.items() if name.startswith("delta.")} == _KNOWN
        and all(_is_known(f.dataType) and not f.metadata for f in fields)
        and len({f.name.lower() for f in fields}) == len(fields)
        and not any(name.startswith(_DEFAULTS) for name in spark.conf.getAll)
    )
    if not is_known or store is None:
        return False
    try:
        write_commit(store, 0, _actions(fields, properties))
    except (NotThisWay, UnknownOutcome):
        return False  # Delta finds the table, or reaches the store another way
    return True


def _is_known(type: T.DataType) -> bool:
    return isinstance(type, _TYPES) or type == T.StringType()


def _actions(fields: Sequence[T.StructField], properties: Mapping[str, str]) -> list[Mapping[str, object]]:
    now = int(time.time() * 1000)
    schema = T.StructType([T.StructField(f.name, f.dataType) for f in fields])
    readers = ["deletionVectors"]
    if any(isinstance(f.dataType, T.TimestampNTZType) for f in fields):
        readers.append("timestampNtz")
    return [
        {
            "commitInfo": {
                "timestamp": now,
                "operation": "CREATE TABLE",
                "operationParameters": {
                    "partitionBy": "[]",
                    "clusterBy": "[]",
                    "description": None,
                    "isManaged": "false",
                    "properties": json.dumps(dict(properties), separators=(",", ":")),
                },
                "isolationLevel": "Serializable",
                "isBlindAppend": True,
                "operationMetrics": {},
                "engineInfo": f"changelog-bridge/{own_version()}",
                "txnId": str(uuid.uuid4()),
            }
        },
        {
            "metaData": {
                "id": str(uuid.uuid4()),
                "format": {"provider": "parquet", "options": {}},
                "schemaString": schema.json(),
                "partitionColumns": [],
                "configuration": dict(properties),
                "createdTime": now,
            }
        },
        {
            "protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": readers,
                "writerFeatures": [*readers, "changeDataFeed", "invariants", "appendOnly"],
            }
        },
    ]

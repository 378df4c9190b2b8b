"""Records as Spark's Kafka source gives them, for tests that make their own."""

from __future__ import annotations

from datetime import datetime, timezone

import pyarrow as pa

RECORD = pa.schema(
    {
        "key": pa.binary(),
        "value": pa.binary(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("us", "UTC"),
        "timestampType": pa.int32(),
        "headers": pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()}.items())),
    }
)
AT = datetime(2020, 2, 29, 12, 0, 0, 987000, tzinfo=timezone.utc)

"""canal-json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bridge.errors import OptionError
from bridge.format_rules.change_documents import CANAL, CdcOptions
from bridge.format_rules.json_options import check
from bridge.formats.base import NOTHING
from bridge.formats.cdc.changed_fields import ChangedFieldsDecoder
from bridge.formats.cdc.encode import CanalEncoder
from bridge.formats.cdc.metadata import BIGINT, STRING, Metadata, Place, millis
from bridge.formats.cdc.operation_types import Types
from bridge.formats.sql import literal
from bridge.schema import ArrayType, MapType, RowType, ScalarType

_PLACES = {
    "database": Place("database"),
    "table": Place("table"),
    "sql-type": Place("sqlType", MapType(STRING, ScalarType("INT"))),
    "pk-names": Place("pkNames", ArrayType(STRING)),
    "ingestion-timestamp": Place("ts", BIGINT, read=millis),
    "event-timestamp": Place("es", BIGINT, read=millis),
}


class _Decoder(ChangedFieldsDecoder):
    types = Types(CANAL)
    several = True


class CanalJsonFormat:
    """Reads and writes Canal's flat messages. CREATE is skipped and other DDL is an error, as in Flink."""

    name = "canal-json"

    def decoder(
        self,
        row: RowType,
        options: Mapping[str, Any],
        *,
        metadata: RowType = NOTHING,
        key: Sequence[str] = (),
    ) -> ChangedFieldsDecoder:
        """See Format.decoder. Raises OptionError for an `include` that is no regular expression."""
        check(row)
        decoder = _Decoder(row, CdcOptions.of(self.name, options), Metadata(metadata, _PLACES), key=key)
        for name, pattern in decoder.filters.patterns.items():
            _check_pattern(f"{self.name}.{name}.include", pattern)
        return decoder

    def encoder(self, row: RowType, options: Mapping[str, Any]) -> CanalEncoder:
        """See Format.encoder."""
        check(row)
        return CanalEncoder(row, CdcOptions.of(self.name, options).json)


def _check_pattern(option: str, pattern: str) -> None:
    """Raise OptionError for a pattern that Java refuses. Without a session, which has the JVM, nothing is checked."""
    spark = SparkSession.getActiveSession()
    if spark is None:
        return
    try:
        spark.sql(f"SELECT 'x' RLIKE {literal(pattern)}").collect()
    except PySparkException as error:
        raise OptionError(f"'{option}' is not a regular expression of Java's: {pattern!r}") from error

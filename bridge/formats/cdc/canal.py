"""canal-json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bridge.errors import OptionError
from bridge.format_rules.cdc_options import CdcOptions
from bridge.format_rules.json_rows import check
from bridge.formats.base import NOTHING
from bridge.formats.cdc.changed_fields import ChangedFieldsDecoder
from bridge.formats.cdc.encode import CanalEncoder
from bridge.formats.cdc.metadata import BIGINT, STRING, Metadata, Place, millis
from bridge.formats.cdc.operation_types import Types
from bridge.formats.sql import literal
from bridge.schema import ArrayType, MapType, RowType, ScalarType

__all__ = ["CanalJsonFormat"]

_PLACES = {
    "database": Place("database"),
    "table": Place("table"),
    "sql-type": Place("sqlType", MapType(STRING, ScalarType("INT"))),
    "pk-names": Place("pkNames", ArrayType(STRING)),
    "ingestion-timestamp": Place("ts", BIGINT, read=millis),
    "event-timestamp": Place("es", BIGINT, read=millis),
}


class _Decoder(ChangedFieldsDecoder):
    types = Types("INSERT", "UPDATE", "DELETE", passed_over=("CREATE",))
    several = True

    def filters(self) -> dict[str, str]:
        """See ChangedDecoder.filters: patterns of Java's that have to match the whole name."""
        given = {"database": self.options.database_include, "table": self.options.table_include}
        return {name: pattern for name, pattern in given.items() if pattern is not None}


class CanalJsonFormat:
    """Reads and writes Canal's flat messages. DDL is bad but for CREATE, which is passed over, as in Flink."""

    name = "canal-json"
    insert_only = False

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
        made = _Decoder(row, CdcOptions.of(self.name, options), Metadata(metadata, _PLACES), key=key)
        for name, pattern in made.filters().items():
            _check_pattern(f"{self.name}.{name}.include", pattern)
        return made

    def encoder(self, row: RowType, options: Mapping[str, Any]) -> CanalEncoder:
        """See Format.encoder."""
        check(row)
        return CanalEncoder(row, CdcOptions.of(self.name, options).json)


def _check_pattern(option: str, pattern: str) -> None:
    """Only Java can tell; a decoder is made where a session is."""
    spark = SparkSession.getActiveSession()
    if spark is None:
        return
    try:
        spark.sql(f"SELECT 'x' RLIKE {literal(pattern)}").collect()
    except PySparkException as error:
        raise OptionError(f"'{option}' is not a regular expression of Java's: {pattern!r}") from error

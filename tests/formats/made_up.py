"""A made-up format: what its declaration refers to. A document is the text of its only column, in upper case."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from bridge.definition import FormatSpec
from bridge.errors import DefinitionError
from bridge.formats.base import NOTHING, Options
from bridge.options import DeclaredFormat
from bridge.options.formats import register, unregister
from bridge.peek.readers import Reader, as_json
from bridge.schema import RowType

UPPER = DeclaredFormat(
    "upper",
    "Text in upper case.",
    rules=f"{__name__}:check_document",
    reader=f"{__name__}:reader",
    spark=f"{__name__}:UpperFormat",
    single_column=True,
    fixed_fields=True,
)


@contextmanager
def registered() -> Iterator[None]:
    """UPPER is a format among the others."""
    register(UPPER)
    try:
        yield
    finally:
        unregister(UPPER.name)


def check_document(format: str, row: RowType, options: Options) -> None:
    if row.fields[0].type.flink() != "STRING":
        raise DefinitionError(f"format '{format}' writes a STRING")


def reader(spec: FormatSpec) -> Reader:
    return lambda document: as_json({spec.row.names[0]: document.decode().lower()})


class UpperFormat:
    name = "upper"

    def decoder(
        self, row: RowType, options: Options, *, metadata: RowType = NOTHING, key: Sequence[str] = ()
    ) -> UpperDecoder:
        return UpperDecoder(row)

    def encoder(self, row: RowType, options: Options) -> UpperEncoder:
        return UpperEncoder(row)


class UpperDecoder:
    skips_errors = False
    has_unavailable = False

    def __init__(self, row: RowType) -> None:
        self.row = row

    def decode(self, payload: Column) -> Column:
        row = F.struct(F.lower(payload.cast("string")).alias(self.row.names[0]))
        change = F.struct(F.lit("+I").alias("kind"), row.alias("row"))
        return F.struct(F.array(change).alias("rows"), F.lit(None).cast("string").alias("error"))

    def for_payloads(self, payloads: DataFrame) -> UpperDecoder:
        return self


class UpperEncoder:
    def __init__(self, row: RowType) -> None:
        self.row = row

    def encode(self, frame: DataFrame, row: Column, name: str) -> DataFrame:
        return frame.withColumn(name, F.upper(row.getField(self.row.names[0])).cast("binary"))

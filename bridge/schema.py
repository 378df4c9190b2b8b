"""The schema of a table in Flink SQL: types, columns, keys. Plain values, no JVM.

Every type has its text in Flink SQL and in Spark SQL. `unsupported` refuses types that Spark or Delta lack, with the
reason and the way out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import Enum

from bridge.errors import DefinitionError, UnsupportedError


def quote(name: str) -> str:
    """Return `name` as a backquoted identifier; Flink and Spark both double a backquote inside."""
    return "`" + name.replace("`", "``") + "`"


@dataclass(frozen=True)
class DataType:
    """Base of all types. `nullable` is False for NOT NULL, which Flink has at every level of a type."""

    nullable: bool = field(default=True, kw_only=True)

    def flink(self) -> str:
        """Return the type in Flink SQL, with NOT NULL."""
        return self._flink() + ("" if self.nullable else " NOT NULL")

    def spark(self) -> str:
        """Return the type in Spark SQL DDL, without NOT NULL, which the bridge checks itself."""
        raise NotImplementedError

    def _flink(self) -> str:
        raise NotImplementedError

    def required(self) -> DataType:
        """Return the same type with NOT NULL."""
        return replace(self, nullable=False)


BYTES = ("BINARY", "VARBINARY", "BYTES")
TIMES = ("TIMESTAMP", "TIMESTAMP_LTZ")
_SPARK_SCALARS = {
    "CHAR": "STRING",
    "VARCHAR": "STRING",
    "STRING": "STRING",
    "BOOLEAN": "BOOLEAN",
    "BINARY": "BINARY",
    "VARBINARY": "BINARY",
    "BYTES": "BINARY",
    "TINYINT": "TINYINT",
    "SMALLINT": "SMALLINT",
    "INT": "INT",
    "BIGINT": "BIGINT",
    "FLOAT": "FLOAT",
    "DOUBLE": "DOUBLE",
    "DATE": "DATE",
    "NULL": "VOID",
    "TIMESTAMP": "TIMESTAMP_NTZ",
    "TIMESTAMP_LTZ": "TIMESTAMP",
}


@dataclass(frozen=True)
class ScalarType(DataType):
    """A type without parts. `name` is Flink's canonical root; `parameters` its length, precision or scale.

    DECIMAL always carries (precision, scale) and TIMESTAMP / TIMESTAMP_LTZ always (precision,), with
    Flink's defaults filled in (10, 0 and 6). CHAR, VARCHAR, BINARY and VARBINARY carry (length,).
    """

    name: str
    parameters: tuple[int, ...] = ()

    def _flink(self) -> str:
        shown = f"({', '.join(map(str, self.parameters))})" if self.parameters else ""
        return self.name + shown

    def spark(self) -> str:
        if self.name == "DECIMAL":
            return f"DECIMAL({self.parameters[0]},{self.parameters[1]})"
        return _SPARK_SCALARS[self.name]

    @property
    def is_string(self) -> bool:
        return _SPARK_SCALARS.get(self.name) == "STRING"

    @property
    def is_binary(self) -> bool:
        return _SPARK_SCALARS.get(self.name) == "BINARY"


@dataclass(frozen=True)
class ArrayType(DataType):
    """ARRAY<element>."""

    element: DataType

    def _flink(self) -> str:
        return f"ARRAY<{self.element.flink()}>"

    def spark(self) -> str:
        return f"ARRAY<{self.element.spark()}>"


@dataclass(frozen=True)
class MapType(DataType):
    """MAP<key, value>. MULTISET<t> is represented as MAP<t, INT>, as Flink reads and writes it."""

    key: DataType
    value: DataType

    def _flink(self) -> str:
        return f"MAP<{self.key.flink()}, {self.value.flink()}>"

    def spark(self) -> str:
        return f"MAP<{self.key.spark()},{self.value.spark()}>"


@dataclass(frozen=True)
class RowField:
    """One field of a ROW."""

    name: str
    type: DataType


@dataclass(frozen=True)
class RowType(DataType):
    """ROW<name type, ...>; also the type of a whole key or value document."""

    fields: tuple[RowField, ...]

    def _flink(self) -> str:
        return "ROW<" + ", ".join(f"{quote(f.name)} {f.type.flink()}" for f in self.fields) + ">"

    def spark(self) -> str:
        return "STRUCT<" + ",".join(f"{quote(f.name)}: {f.type.spark()}" for f in self.fields) + ">"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.fields)


_NO_COUNTERPART = {
    "TIME": "Delta has no TIME type; declare STRING (or INT for milliseconds of the day)",
    "INTERVAL": "Flink's formats cannot write intervals; declare BIGINT and name the unit",
    "RAW": "RAW is Flink's own serialisation; declare BYTES",
    "NULL": "a column of type NULL has no values; leave it out",
    "TIMESTAMP_TZ": "Flink's formats do not support TIMESTAMP WITH TIME ZONE; declare TIMESTAMP_LTZ",
    "VARIANT": "the bridge does not read or write VARIANT (in Flink since 2.1); declare STRING, which has the JSON",
}


def types(type: DataType) -> Iterator[DataType]:
    """Yield `type` and all its parts."""
    yield type
    if isinstance(type, ArrayType):
        yield from types(type.element)
    elif isinstance(type, MapType):
        yield from types(type.key)
        yield from types(type.value)
    elif isinstance(type, RowType):
        for field in type.fields:
            yield from types(field.type)


def unsupported(type: DataType) -> str | None:
    """Return why `type` (or a part of it) has no Spark counterpart, or None where it has one."""
    for part in types(type):
        if isinstance(part, ScalarType):
            if part.name in _NO_COUNTERPART:
                return _NO_COUNTERPART[part.name]
            if part.name in ("TIMESTAMP", "TIMESTAMP_LTZ") and part.parameters[0] > 6:
                return f"Spark keeps microseconds; declare {part.name}(6) (digits beyond are cut)"
    return None


def refuse_fields(format: str, row: RowType) -> None:
    """Raise UnsupportedError for a type that Spark lacks, DefinitionError for fields of a row whose names differ by
    case at most; `format` is the one that would read or write them."""
    if reason := unsupported(row):
        raise UnsupportedError(f"format '{format}': {reason}", what="column type")
    for part in types(row):
        seen: dict[str, str] = {}
        for name in part.names if isinstance(part, RowType) else ():
            other = seen.setdefault(name.lower(), name)
            if other is not name:
                raise DefinitionError(
                    f"fields {other!r} and {name!r} differ by case at most, which Delta cannot store side by side; "
                    "rename one of them"
                )


@dataclass(frozen=True)
class Column:
    """A column of the table, of any kind."""

    name: str


@dataclass(frozen=True)
class PhysicalColumn(Column):
    """A column that is a field of the key or value document."""

    type: DataType
    comment: str | None = None


@dataclass(frozen=True)
class MetadataColumn(Column):
    """`name type METADATA [FROM 'key'] [VIRTUAL]`: read from (and, unless virtual, written to) the record."""

    type: DataType
    key: str
    virtual: bool = False
    comment: str | None = None


@dataclass(frozen=True)
class ComputedColumn(Column):
    """`name AS expression`: computed on ingest, left out on publish. `spark` is the Spark SQL expression, NULL where it
    fails in Flink."""

    expression: str
    spark: str
    comment: str | None = None
    failure: str | None = None
    """Why it fails for a row, in Spark SQL; NULL where it does not fail. None if it cannot."""
    own_functions: tuple[str, ...] = ()
    """The functions that it calls and that are none of Flink's: the user has registered them in Spark."""
    reads: tuple[str, ...] = ()
    """The columns that it is computed of."""


@dataclass(frozen=True)
class Watermark:
    """`WATERMARK FOR column AS column - INTERVAL ...`: the event-time lag is measured by it."""

    column: str
    expression: str
    delay_seconds: float


class ColumnRule(str, Enum):
    """`delta.aggregate`: what becomes of the value of a row and that of a change (see `column_rules`)."""

    FIRST = "first"
    MIN = "min"
    MAX = "max"
    SUM = "sum"
    COLLECT_SET = "collect-set"


@dataclass(frozen=True)
class RowConstraint:
    """A condition of a Delta table on each of its rows."""

    condition: str
    """Spark SQL; the table accepts rows for which it is true, not those for which it is NULL."""
    broken: str
    """Why a row is not accepted, without its values."""
    not_null: str | None = None
    """The column, if the condition is that it has a value."""
    partition: str | None = None
    """The partition column, if the condition is that it can hold the value."""
    padded: str | None = None
    """The column, if the condition is that its value is as long as its CHAR."""


@dataclass(frozen=True)
class TableSchema:
    """All columns in DDL order, the primary key in its own order (Flink: the key document's order), the watermark."""

    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()
    watermark: Watermark | None = None

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.columns)

    @property
    def physical(self) -> tuple[PhysicalColumn, ...]:
        return tuple(c for c in self.columns if isinstance(c, PhysicalColumn))

    @property
    def metadata(self) -> tuple[MetadataColumn, ...]:
        return tuple(c for c in self.columns if isinstance(c, MetadataColumn))

    @property
    def computed(self) -> tuple[ComputedColumn, ...]:
        return tuple(c for c in self.columns if isinstance(c, ComputedColumn))

    def row(
        self, names: tuple[str, ...], strip_prefix: str = "", *, key_is_required: bool = False
    ) -> RowType:
        """Return the ROW of the named physical columns, in that order, names stripped of `strip_prefix`; those of the
        PRIMARY KEY are NOT NULL where `key_is_required`."""
        required = self.primary_key if key_is_required else ()
        types = {c.name: c.type.required() if c.name in required else c.type for c in self.physical}
        return RowType(tuple(RowField(n.removeprefix(strip_prefix), types[n]) for n in names))

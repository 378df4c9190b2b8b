"""The contract of every registered format; shapes.py has the values that each can represent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bridge.formats import catalog
from bridge.formats.base import NEEDS_FULL_DECODE, ChangeEncoder, Decoder, Encoder, FastPathDecoder, Format
from bridge.options import FORMATS
from bridge.schema import ArrayType, MapType, RowType
from tests.formats.shapes import SHAPES, Sample, Shape, options_of
from tests.formats.support import decode_all, encode_all, encode_changes, encoded, plain, row_type, scalar

_FEW = settings(
    max_examples=1,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)


@dataclass(frozen=True)
class _Subject:
    """A format with the options it is tested with."""

    format: Format
    sample: Sample
    given: Mapping[str, Any]

    def decoder(self, shape: Shape | None = None) -> Decoder:
        row, more = (shape.row, shape.options) if shape else (self.sample.plain, {})
        return self.format.decoder(row, {**self.given, **more})

    def encoder(self, shape: Shape | None = None) -> Encoder | ChangeEncoder:
        row, more = (shape.row, shape.options) if shape else (self.sample.plain, {})
        return self.format.encoder(row, {**self.given, **more})

    def named(self, *rows: tuple[Any, ...]) -> list[Any]:
        """Plain rows as `decode_all` shows them."""
        return [_named(row, self.sample.plain) for row in rows]

    def write_plain(self, spark: SparkSession) -> list[bytes | None]:
        return encode_all(spark, self.encoder(), self.sample.plain, self.sample.plain_rows)


def _subject(name: str, request: pytest.FixtureRequest) -> _Subject:
    sample = SHAPES.get(name)
    if sample is None:
        pytest.fail(f"format '{name}' has no entry in tests/formats/shapes.py: add one to SHAPES")
    more = request.getfixturevalue(sample.needs) if sample.needs else {}
    return _Subject(catalog.get(name), sample, options_of(name, sample.options, more))


@pytest.fixture(params=catalog.available())
def subject(request: pytest.FixtureRequest) -> _Subject:
    return _subject(request.param, request)


_SHAPES = [
    (name, shape)
    for name in catalog.available()
    for shape in (SHAPES[name].shapes if name in SHAPES else ["no entry"])
]


@_FEW
@pytest.mark.parametrize(("name", "shape"), _SHAPES)
@given(data=st.data())
def test_what_is_written_is_read_back(
    spark: SparkSession, request: pytest.FixtureRequest, name: str, shape: str, data: st.DataObject
) -> None:
    """Every type, on every level the format has, with nulls and awkward names."""
    subject = _subject(name, request)
    drawn = subject.sample.shapes[shape]
    rows = data.draw(drawn.rows)
    written = encode_all(spark, subject.encoder(drawn), drawn.row, rows)
    read = decode_all(spark, subject.decoder(drawn), written)
    assert [error for _, error in read] == [None] * len(rows)
    assert [actual for actual, _ in read] == [[("+I", _named(drawn.read_back(r), drawn.row))] for r in rows]


@pytest.mark.parametrize("name", [n for n in catalog.available() if not FORMATS[n].insert_only])
@_FEW
@given(data=st.data())
def test_changes_that_are_written_are_read_back(
    spark: SparkSession, request: pytest.FixtureRequest, name: str, data: st.DataObject
) -> None:
    """A change document is an insert, a delete, or an update with the before image."""
    subject = _subject(name, request)
    for shape in subject.sample.shapes.values():
        rows = data.draw(shape.rows)
        changes = [(None, rows[0]), (rows[0], None), (None, None), *zip(rows[1::2], rows[2::2], strict=False)]
        written = encode_changes(spark, subject.encoder(shape), shape.row, changes)
        read = decode_all(spark, subject.decoder(shape), written)
        assert read[2] == (None, None)
        for (before, after), (actual, error) in zip(changes, read, strict=True):
            expected = [
                (kind, _named(shape.read_back(row), shape.row))
                for kind, row in (("-U" if after else "-D", before), ("+U" if before else "+I", after))
                if row is not None
            ]
            assert (actual or [], error) == (expected, None)


def test_days_and_moments_of_all_years_are_read_back(spark: SparkSession, subject: _Subject) -> None:
    """Of those that Spark has; Java writes years beyond 9999 with a sign."""
    if subject.format.name == "raw":
        pytest.skip("raw has no dates")
    shape = row_type(d=scalar("DATE"), t=scalar("TIMESTAMP", 3), z=scalar("TIMESTAMP_LTZ", 3))
    days = [-(2**31), -800_000, -719_529, -719_528, -719_162, 2_932_896, 2_932_897, 2**31 - 1]
    moments = [
        904 - 2**62,
        -62_167_219_200_001_000,
        -62_135_596_800_000_000,
        253_402_300_800_000_000,
        2**62 - 904,
    ]
    values = [(day, moments[n % len(moments)]) for n, day in enumerate(days)]
    moment = "timestamp_micros(m)"
    row = f"struct(date_from_unix_date(d) AS d, CAST({moment} AS TIMESTAMP_NTZ) AS t, {moment} AS z)"
    written = spark.createDataFrame(values, "d int, m bigint").selectExpr("d", "m", f"{row} AS row")
    format, given = subject.format, dict(subject.given)
    if "timestamp_mapping.legacy" in given:  # whose default, true, has no type for TIMESTAMP_LTZ
        given["timestamp_mapping.legacy"] = False
    written = encoded(format.encoder(shape, given), written, "payload", F.col("row"))
    read = written.withColumn("read", format.decoder(shape, given).decode(F.col("payload")))
    same = (
        read.selectExpr("read.rows[0].row <=> row AS same", "d", "m", "read.error")
        .where("NOT same")
        .collect()
    )
    assert same == []


def test_null_is_no_document_and_no_row_gives_no_bytes(spark: SparkSession, subject: _Subject) -> None:
    # To Flink's raw format null is a row that holds a null (test_raw.py).
    nothing = subject.named((None,)) if subject.format.name == "raw" else None
    assert decode_all(spark, subject.decoder(), [None]) == [(nothing and [("+I", nothing[0])], None)]
    assert encode_all(spark, subject.encoder(), subject.sample.plain, [None]) == [None]


def test_the_fast_path_gives_the_same_or_needs_a_full_decode(spark: SparkSession, subject: _Subject) -> None:
    """A decoder of `for_payloads`, which decode_all takes, has the flags of the decoder."""
    written = subject.write_plain(spark)
    payloads = [*written, None, b"\xff", b"", b"[1", b'{"a":"5"}', *subject.sample.bad]
    decoder = subject.decoder()
    full = decode_all(spark, decoder, payloads)
    nulls = [at for at, payload in enumerate(payloads[: len(written) + 1]) if payload is None]
    if isinstance(decoder, FastPathDecoder):
        fast = decode_all(spark, decoder, payloads, fast=True)
        assert [fast[at] for at in nulls] == [full[at] for at in nulls]
        assert all(a in (b, (None, NEEDS_FULL_DECODE)) for a, b in zip(fast, full, strict=True))
    assert NEEDS_FULL_DECODE not in [error for _, error in full]
    assert [rows for rows, _ in full[: len(written)]] == [
        [("+I", row)] for row in subject.named(*subject.sample.plain_rows)
    ]
    other = decoder.for_payloads(spark.createDataFrame([(written[0],)], "payload binary"))
    assert (other.skips_errors, other.has_unavailable) == (decoder.skips_errors, decoder.has_unavailable)


def test_no_bytes_make_a_decoder_raise(spark: SparkSession, subject: _Subject) -> None:
    """Each payload gives rows or a reason; a reason never shows what was sent; bad ones name what is wrong."""
    written = [w for w in subject.write_plain(spark) if w]
    cut = [w[:n] for w in written for n in range(len(w))]
    noise = [bytes([b]) for b in range(256)] + [b"\xf0\x28\x8c\x28secret", b"secret" * 1000, b"\x00" * 9]
    bad = subject.sample.bad
    actual = decode_all(spark, subject.decoder(), [*bad, *cut, *noise])
    for rows, error in actual:
        assert rows is None or error is None
        assert "secret" not in (error or "")
    for (payload, expected), (_, error) in zip(bad.items(), actual, strict=False):
        assert expected in (error or ""), payload


def test_a_document_without_a_field(spark: SparkSession, subject: _Subject) -> None:
    if subject.sample.missing is None:
        pytest.skip(f"a {subject.format.name} document cannot lack a field")
    document, expected = subject.sample.missing
    [(rows, error)] = decode_all(spark, subject.decoder(), [document])
    if isinstance(expected, str):
        assert rows is None and expected in (error or "")
    else:
        assert ([row for _, row in rows or []], error) == (subject.named(expected), None)


def test_an_encoder_of_changes_is_one_of_a_format_with_row_kinds(subject: _Subject) -> None:
    insert_only = FORMATS[subject.format.name].insert_only
    assert hasattr(subject.encoder(), "encode_change") == (not insert_only)


def _named(values: Any, type: Any) -> Any:
    """`values` as decode_all gives them: tuples of a ROW become dicts."""
    if values is None:
        return None
    if isinstance(type, RowType):
        return {f.name: _named(v, f.type) for f, v in zip(type.fields, values, strict=True)}
    if isinstance(type, ArrayType):
        return [_named(v, type.element) for v in values]
    if isinstance(type, MapType):
        return {k: _named(v, type.value) for k, v in values.items()}
    return plain(values)

"""json's fast path and full decode agree wherever the fast path covers a document."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bridge.format_rules.json_options import JsonOptions
from bridge.formats.base import NEEDS_FULL_DECODE
from bridge.formats.json.decode import JsonDecoder
from bridge.formats.json.full_decode import FullDecode
from bridge.formats.sql import Names, apply, let
from bridge.schema import ArrayType, MapType
from tests.formats.support import decode_all, plain, row_type, scalar

_ROW = row_type(
    flag=scalar("BOOLEAN"),
    tiny=scalar("TINYINT"),
    int=scalar("INT"),
    big=scalar("BIGINT"),
    double=scalar("DOUBLE"),
    money=scalar("DECIMAL", 6, 2),
    text=scalar("STRING"),
    day=scalar("DATE"),
    time=scalar("TIMESTAMP", 3),
    second=scalar("TIMESTAMP_LTZ", 0),
    list=ArrayType(scalar("STRING")),
    map=MapType(scalar("STRING"), scalar("DECIMAL", 20, 18)),
    row=row_type(text=scalar("STRING"), days=ArrayType(scalar("DATE"))),
)

_DIGITS = st.integers(0, 10**25).map(str)
_NUMBERS = st.one_of(
    st.sampled_from(
        [
            *("0 -0 1.10 1.0 -1.50 0.1 100 1e3 1E400 -1.5e-7 127 128 1e999999999".split()),
            *("12345678901234567890", "1.000000000000000001"),
        ]
    ),
    st.integers(-(2**65), 2**65).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.tuples(st.integers(-(10**5), 10**5), _DIGITS).map(lambda p: f"{p[0]}.{p[1]}"),
)
_MOMENTS = st.tuples(
    st.sampled_from(
        "2020-02-29 2021-02-29 0001-01-01 9999-12-31 +12020-01-01 -0001-01-01 2020-1-1 20200101".split()
    ),
    st.sampled_from(
        ["", " 12:00:00", " 12:00:00.", " 23:59:59.120", " 23:59:59.1234567", "T12:00:00", " 24:00:00"]
    ),
    st.sampled_from(["", "", "Z", " ", "+01:00"]),
).map("".join)
_STRINGS = st.one_of(
    st.text(st.characters(exclude_characters='"\\', exclude_categories=["Cs", "Cc"]), max_size=6),
    st.sampled_from(
        [
            "Infinity",
            "-Infinity",
            "NaN",
            "0",
            "true",
            " 12 ",
            "1,5",
            r"\u0001",
            r"\"",
            r"a\nb",
            r"\"Infinity\"",
        ]
    ),
    _NUMBERS,
    _MOMENTS,
).map(lambda text: f'"{text}"')
_TOKENS = st.recursive(
    st.one_of(_STRINGS, _NUMBERS, st.sampled_from(["true", "false", "null", "tru"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.lists(st.tuples(st.sampled_from(["text", "days", "k", "0"]), inner), max_size=3).map(
            lambda pairs: "{" + ",".join(f'"{k}" :{v}' for k, v in pairs) + "}"
        ),
    ),
    max_leaves=4,
)
# Often values of the right type, so that the fast path covers some documents; a name may be repeated or absent.
_WANTED = {
    "flag": st.sampled_from(["true", "false"]),
    "money": st.integers(-(10**4), 10**4).map(lambda n: str(n / 100)),
    "text": _STRINGS,
    "day": st.dates().map(lambda d: f'"{d}"'),
    "time": st.datetimes().map(lambda t: f'"{t}"'),
    "second": st.datetimes().map(lambda t: f'"{t}Z"'),
    "list": st.lists(_STRINGS, max_size=3).map(lambda items: f"[{','.join(items)}]"),
    "map": _NUMBERS.map(lambda n: f'{{"k": {n}}}'),
    "row": st.tuples(_STRINGS, st.dates()).map(lambda p: f'{{"text":{p[0]},"days":["{p[1]}",null]}}'),
}
_MEMBERS = st.one_of(
    *(st.tuples(st.just(name), tokens) for name, tokens in _WANTED.items()),
    st.tuples(st.sampled_from(["tiny", "int", "big", "double"]), st.integers(-128, 127).map(str)),
    st.tuples(st.sampled_from([*_ROW.names, "other"]), _TOKENS),
)
_DOCUMENTS = st.lists(_MEMBERS, max_size=5).map(
    lambda pairs: ("{" + ", ".join(f'"{k}": {v}' for k, v in pairs) + "}").encode()
)


@settings(
    max_examples=2,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
@given(payloads=st.lists(_DOCUMENTS, min_size=80, max_size=100))
def test_both_paths_give_the_same(spark: SparkSession, payloads: list[bytes]) -> None:
    options, names = JsonOptions(), Names()
    decoder, full_decode, x = JsonDecoder(_ROW, options), FullDecode(_ROW, options, names), F.col("x")
    full = apply(x, let(names, "CAST(bytes AS STRING)", full_decode.rows), "bytes")
    frame = spark.createDataFrame([(p,) for p in payloads], "x BINARY").coalesce(1)
    decoded = decoder.decode_fast(frame, x, "g").select(decoder.decode(x).alias("d"), "g", full.alias("s"))
    covered = 0
    for payload, r in zip(payloads, decoded.collect(), strict=True):
        known = (plain(r.s.v), r.s.e)
        assert (plain(r.d.rows and [c.row for c in r.d.rows]), r.d.error) == known, payload
        if r.g.error != NEEDS_FULL_DECODE:
            assert (plain([c.row for c in r.g.rows]), r.g.error) == known, payload
            covered += 1
    assert covered > len(payloads) // 10


def test_digits_that_a_double_loses_are_read(spark: SparkSession) -> None:
    decoder = JsonDecoder(row_type(n=scalar("DECIMAL", 38, 18)), JsonOptions())
    payloads = [b'{"n":1.000000000000000001}', b'{"n":1.5}']
    exact = [Decimal("1.000000000000000001"), Decimal("1.5")]
    assert decode_all(spark, decoder, payloads) == [([("+I", {"n": n})], None) for n in exact]
    assert decode_all(spark, decoder, payloads, fast=True)[0] == (None, NEEDS_FULL_DECODE)
    assert decode_all(spark, decoder, payloads[1:], fast=True) == [([("+I", {"n": exact[1]})], None)]

"""Arrow's decoder of csv gives what Spark's paths give, or leaves the lines to them."""

from __future__ import annotations

import pickle
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from bridge.arrow_formats.arrow_types import arrow_schema
from bridge.arrow_formats.catalog import arrow_decoder
from bridge.definition import FormatSpec
from bridge.schema import DataType, ScalarType
from bridge.ways import NotThisWay
from tests.arrow_formats import drawn_json
from tests.arrow_formats.against_spark import array, by_arrow, compare, made, spec
from tests.refusals import refusal

_TYPES = {
    "s": "STRING",
    "i": "INT",
    "t": "TINYINT",
    "l": "BIGINT",
    "b": "BOOLEAN",
    "f": "FLOAT",
    "d": "DOUBLE",
    "m": "DECIMAL(10, 2)",
    "w": "DECIMAL(38, 18)",
    "day": "DATE",
    "at": "TIMESTAMP(3)",
    "z": "TIMESTAMP_LTZ(6)",
}
_DAMAGE = [*"\",;| \t\r\n#\\'", '""', '"a', 'a"', "\0", "\ufeff", "\x7f", "\x1f", "١", "+", "e5"]
_DAMAGE += ["0x1F", "NaN", "inf", "null"]


def of(types: dict[str, str] | None = None, **options: Any) -> FormatSpec:
    return spec("csv", types or _TYPES, **options)


def _field(rng: random.Random, type: DataType, *, odd: bool) -> str:
    drawn = (drawn_json.odd if odd else drawn_json.usual)(rng, type)
    assert isinstance(type, ScalarType)
    if drawn == "null":
        return rng.choice(["null", ""])
    if type.is_string and not odd:
        text = rng.choice(["", "a", "ä b", "x,y", 'q"q', "0x1", "true", "z" * 30])
        return (
            text if rng.random() < 0.5 and not set('",') & set(text) else '"' + text.replace('"', '""') + '"'
        )
    return drawn.strip('"') if rng.random() < 0.8 else drawn


def _line(rng: random.Random, given: FormatSpec, delimiter: str) -> bytes:
    odd = rng.randrange(len(given.row.fields)) if rng.random() < 0.3 else None
    fields = [_field(rng, f.type, odd=at == odd) for at, f in enumerate(given.row.fields)]
    line = delimiter.join(fields)
    for _ in range(rng.choice([0, 0, 0, 1, 2])):
        at = rng.randint(0, len(line))
        line = line[:at] + rng.choice(_DAMAGE) + line[at + rng.randint(0, 1) :]
    return line.encode("utf-8", "surrogatepass") + (b"\xff" if rng.random() < 0.01 else b"")


@settings(max_examples=3, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(
    names=st.lists(st.sampled_from(list(_TYPES)), min_size=1, max_size=4, unique=True),
    options=st.fixed_dictionaries(
        {},
        optional={
            "field_delimiter": st.sampled_from([";", "|", "\t", "."]),
            "null_literal": st.sampled_from(["null", ""]),
            "empty_string_as_null": st.just(True),
            "disable_quote_character": st.just(True),
            "ignore_parse_errors": st.just(True),
        },
    ),
    seed=st.integers(0, 2**32),
)
def test_drawn_lines(spark: SparkSession, names: list[str], options: dict[str, Any], seed: int) -> None:
    rng, drawn = random.Random(seed), of({name: _TYPES[name] for name in names}, **options)
    compare(spark, drawn, [_line(rng, drawn, options.get("field_delimiter", ",")) for _ in range(400)])


@pytest.mark.slow
@pytest.mark.parametrize("name", _TYPES)
def test_many_lines_of_every_type(spark: SparkSession, name: str) -> None:
    rng, drawn = random.Random(), of({name: _TYPES[name], "x": "STRING"})
    assert compare(spark, drawn, [_line(rng, drawn, ",") for _ in range(4000)]) > 400


def test_odd_lines(spark: SparkSession) -> None:
    good = [b"a,1", b'"a",1', b'"a,b",-2', b'"a""b",3', b"'a',4", b"#,5", b" a ,6", b",007", b'"\t",8']
    odd = [
        b"", b"a", b"a,", b"a,1,", b"a,1, ", b"a,1,2", b"a,1\n", b"a,1\r", b"a,1\nb,2", b'a"b,1', b'"a"b,1',
        b'"a" ,1', b'"a,1', b'"a\n",1', b'a,"1"', b'a,"1" ', b"a,+1", b"a, 1", b"a,0x1", b"a,1.0", b"a,2147483648",
        b"a,-", b"\0,1", b"a\0,1", b"\xff,1", b"\xef\xbb\xbfa,1", b'""",1', b'"""",1', b'"",1', b"\n", b",",
    ]  # fmt: skip
    found = of({"s": "STRING", "i": "INT"})
    assert compare(spark, found, [*good, *odd]) >= len(good)


def test_texts_that_mean_null(spark: SparkSession) -> None:
    lines = [b"n/a,1", b'"n/a",1', b"N/A,1", b",1", b'"",1', b"a,n/a", b"a,", b'a,""']
    types = {"s": "STRING", "i": "INT"}
    assert compare(spark, of(types, null_literal="n/a"), lines) == 6
    assert compare(spark, of(types, empty_string_as_null=True), lines) == 7
    found = by_arrow(of(types, null_literal="n/a"), lines)
    assert found[:2] == [{"s": None, "i": 1}] * 2 and found[5] == {"s": "a", "i": None}


def test_lines_do_not_make_up_for_each_other() -> None:
    for lines in ([b'"a', b'b",1'], [b"a,1\nb,2", b""], [b"a", b"1,2,3"], [b'"a,1\n', b'"']):
        with pytest.raises(NotThisWay):
            made(of({"s": "STRING", "i": "INT"})).decode(array(lines))


def test_many_lines_keep_their_order_and_types() -> None:
    lines = [b'"%d",%d' % (n, n) for n in range(50_000)]
    table = made(of({"s": "STRING", "i": "INT"})).decode(array(lines))
    assert table["i"].to_pylist() == list(range(50_000)) == [int(s) for s in table["s"].to_pylist()]
    assert all(column.num_chunks == 1 for column in table.columns)
    assert table.schema == arrow_schema(of({"s": "STRING", "i": "INT"}).row)


@pytest.mark.parametrize(
    ("types", "options", "reason"),
    [
        ({"a": "ARRAY<INT>"}, {}, "field 'a' of a line is ARRAY<INT>"),
        ({"a": "BYTES"}, {}, "field 'a' of a line is BYTES"),
        ({"a": "INT"}, {"escape_character": "\\"}, "csv has escapes, comments, or spaces to be trimmed"),
        ({"a": "INT"}, {"trim_spaces": True}, "csv has escapes, comments, or spaces to be trimmed"),
        ({"a": "INT"}, {"allow_comments": True}, "csv has escapes, comments, or spaces to be trimmed"),
        ({"a": "INT"}, {"field_delimiter": "§"}, "csv has an unusual delimiter or quote"),
    ],
)
def test_what_is_left_to_spark(types: dict[str, str], options: dict[str, Any], reason: str) -> None:
    assert refusal(lambda: arrow_decoder(of(types, **options))) == reason


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"secret,1", "field 'i' has an unusual INT"),
        (b"1,2,secret", "a document has more or fewer fields than the row"),
        (b'1,"secret', "a document has quotes that do not enclose a field"),
        (b"1,2\nsecret", "a document has a line break or a NUL"),
        (b"\xff,secret", "a document is not valid UTF-8"),
        (b"", "a document is empty"),
        (b"\xef\xbb\xbf1,secret", "a document has a byte order mark"),
    ],
)
def test_a_reason_has_no_payload(line: bytes, reason: str) -> None:
    with pytest.raises(NotThisWay) as needed:
        made(of({"i": "INT", "s": "STRING"})).decode(array([line]))
    assert str(needed.value) == reason
    assert needed.value.__context__ is None or needed.value.__suppress_context__


def test_a_decoder_is_sent_to_workers() -> None:
    decoder = made(of({"i": "INT"}))
    sent = pickle.loads(pickle.dumps(decoder))
    assert sent == decoder and sent.decode(array([b"5"]))["i"].to_pylist() == [5]
    assert decoder.decode(array([])).equals(arrow_schema(of({"i": "INT"}).row).empty_table())

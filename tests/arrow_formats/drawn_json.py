"""JSON documents made by a random generator: usual ones of every type, odd ones, and damaged ones."""

from __future__ import annotations

import json
import random
import struct
from datetime import date, datetime, timedelta

from bridge.schema import ArrayType, DataType, MapType, RowType, ScalarType
from tests.formats.support import row_type, scalar

TYPES: dict[str, DataType] = {
    "flag": scalar("BOOLEAN"),
    "tiny": scalar("TINYINT"),
    "small": scalar("SMALLINT"),
    "int": scalar("INT"),
    "big": scalar("BIGINT"),
    "float": scalar("FLOAT"),
    "double": scalar("DOUBLE"),
    "text": scalar("STRING"),
    "char": scalar("CHAR", 3),
    "varchar": scalar("VARCHAR", 5),
    "money": scalar("DECIMAL", 10, 2),
    "whole": scalar("DECIMAL", 38, 0),
    "half": scalar("DECIMAL", 38, 18),
    "tail": scalar("DECIMAL", 38, 38),
    "rate": scalar("DECIMAL", 5, 5),
    "day": scalar("DATE"),
    **{f"at{p}": scalar("TIMESTAMP", p) for p in (0, 1, 3, 5, 6)},
    **{f"ltz{p}": scalar("TIMESTAMP_LTZ", p) for p in (0, 3, 6)},
    "ints": ArrayType(scalar("INT")),
    "sums": ArrayType(scalar("DECIMAL", 9, 6)),
    "times": ArrayType(ArrayType(scalar("TIMESTAMP_LTZ", 3))),
    "a.b": row_type(a=scalar("STRING"), b=ArrayType(row_type(c=scalar("BIGINT"), d=scalar("DATE")))),
    "q`u'o\"t\\e": scalar("STRING"),
    "ünï 名": row_type(**{"x.y`z": scalar("DOUBLE")}),
}
"""Every type that Arrow reads, on several levels, and awkward names."""

_CHARACTERS = [
    "a",
    "b",
    " ",
    "é",
    "名",
    "😀",
    '"',
    "\\",
    "/",
    "\n",
    "\t",
    "\0",
    "\x1f",
    "\x7f",
    "\ufeff",
    "{",
    "}",
    ",",
]
_NUMBERS = """
0 -0 -0.0 0.0 0e0 -0e5 1.0 1.10 1.5 -1.50 100 1e3 1E3 1e+3 1E-3 1e03 1e003 1e0003 1e-0002 1e22 1e23 1e400 -1e400 1e-400
127 128 -128 -129 32767 32768 2147483647 2147483648 -2147483648 -2147483649 9223372036854775807 9223372036854775808
-9223372036854775808 -9223372036854775809 18446744073709551616 12345678901234567890 123456789012345678901234567890
99999999.99 99999999.995 99999999.994 100000000 1234567890 999999999.9 0.5 0.05 0.005 0.004999 0.1000000000000000055
0.10000000000000000550 12345678901234567890.123456789012345678 99999999999999999999.999999999999999999 1e37 1e38 9e37
123456789012345678901234567890123456789 0.123456789012345678901234567890123456789 4.9e-324 5e-324 2.4e-324 1e-310
2.2250738585072012e-308 2.2250738585072014e-308 1.7976931348623157e308 1.7976931348623159e308 3.4028235e38 3.4028236e38
1.17549428e-38 1e39 1e-46 7e-46 16777217 9007199254740993 9007199791611905 0.1 0.30000000000000004 1e999999999
1e-999999999 00 01 -01 +1 .5 5. 1. -.5 - + 1e 1e+ 0x10 1_000 NaN -NaN Infinity -Infinity Inf -Inf nan inf
""".split()
_TEXTS = [
    *"true True TRUE false null NaN Infinity -Infinity 1,5 0x5 . - + e5 .e5 1e .5. 1.5 +1.5 1. AQID".split(),
    *[
        "",
        " ",
        " 12 ",
        " true ",
        "١",
        "1_0",
        "0" * 300 + "1",
        "9" * 50,
        "Info, Infinity]",
        ":NaN,",
        ": -Inf }",
    ],
]
_DAYS = """
2020-02-29 2021-02-29 0001-01-01 9999-12-31 +12020-01-01 -0001-01-01 2020-1-1 20200101 1582-10-10 0999-12-31
""".split()
_TIMES = """
_12:00:00 _12:00:00. _23:59:59.120 _23:59:59.123456 _23:59:59.1234567 _12:00 _23:59:59.123456789 _23:59:59.1234567890
T12:00:00 T12:00 T12:00:00. T12:00:00.5 _24:00:00 _23:59:60 _1:00:00 _12:00:0
""".split()
_MOMENTS = [
    f"{day}{time}{end}"
    for day in _DAYS
    for time in ["", *(time.replace("_", " ") for time in _TIMES)]
    for end in ["", "Z", "z", " ", "+01:00", "ZZ", "T"]
]
_BARE = [
    "true",
    "false",
    "null",
    "tru",
    "nul",
    "True",
    "[]",
    "{}",
    "[1]",
    '{"a":1}',
    '{"a":1,"a":2}',
    "[1,]",
    "{,}",
]
_ESCAPES = [
    r"\u0000",
    r"\u0041",
    r"\ud83d\ude00",
    r"\ud800",
    r"\udc00",
    r"\ud800\u0041",
    r"\x",
    r"\/",
    r"\b",
    r"\uD83D\uDE00",
]
_DAMAGE = [
    *(bytes([b]) for b in b'{}[]":,\\ \n\r\t\0e0.-+x'),
    b"\xff",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
]
_DAMAGE += [b"null", b"NaN", b"}{", b"}\n{", b"{}", b"//", b'""', b"\xf0\x9f", b"\x7f", b"\x1f"]


def usual(rng: random.Random, type: DataType, *, iso: bool = False) -> str:
    """JSON of a value as serializers write it."""
    if isinstance(type, RowType):
        return json_object(
            [(f.name, usual(rng, f.type, iso=iso)) for f in type.fields if rng.random() < 0.9], rng
        )
    if isinstance(type, ArrayType):
        return "[" + ",".join(usual(rng, type.element, iso=iso) for _ in range(rng.randrange(4))) + "]"
    if rng.random() < 0.05:
        return "null"
    assert isinstance(type, ScalarType)
    if type.name == "DECIMAL":
        return _decimal(rng, *type.parameters)
    if type.name == "BOOLEAN":
        return rng.choice(["true", "false"])
    if type.is_string:
        return json.dumps(_text(rng), ensure_ascii=rng.random() < 0.5)
    if type.name in ("FLOAT", "DOUBLE"):
        return _double(rng, "f" if type.name == "FLOAT" else "d")
    if type.name in ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ"):
        return f'"{_moment(rng, type, iso)}"'
    bits = {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}[type.name]
    return str(
        rng.choice([rng.getrandbits(rng.randint(1, bits)), 2**bits - 1, -(2**bits), -rng.getrandbits(bits)])
    )


def odd(rng: random.Random, type: DataType) -> str:
    """JSON, or almost, of a value of any other kind, or an odd one of this kind."""
    kind = rng.randrange(8)
    if kind == 0:
        return rng.choice(_BARE)
    if kind == 1:
        return '"' + "".join(rng.choice(_ESCAPES) for _ in range(rng.randint(1, 2))) + '"'
    if kind in (2, 3) or isinstance(type, ArrayType | RowType | MapType):
        number = rng.choice([*_NUMBERS, _double(rng, "d"), _decimal(rng, 38, rng.randrange(39))])
        return rng.choice([number, number, f'"{number}"', f"[{number}]"])
    assert isinstance(type, ScalarType)
    if kind == 4:
        return json.dumps(rng.choice(_TEXTS))
    if kind == 5 and type.name not in ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ"):
        return f'"{usual(rng, type)}"'.replace('""', '"')
    return json.dumps(rng.choice(_MOMENTS))


def usual_document(rng: random.Random, row: RowType, *, iso: bool = False) -> bytes:
    """An object of some of the row's fields, and of others."""
    return _document(rng, [(f.name, usual(rng, f.type, iso=iso)) for f in row.fields if rng.random() < 0.8])


def document(rng: random.Random, row: RowType, *, iso: bool = False) -> bytes:
    """An object that may have an odd value, a repeated field or a damaged byte."""
    members = [(f.name, usual(rng, f.type, iso=iso)) for f in row.fields if rng.random() < 0.6]
    if rng.random() < 0.6:
        field = rng.choice(row.fields)
        members.insert(rng.randint(0, len(members)), (field.name, odd(rng, field.type)))
    if rng.random() < 0.2:
        members.append(("other", odd(rng, rng.choice(row.fields).type)))
    made = _document(rng, members)
    for _ in range(rng.choice([0, 0, 0, 1, 1, 2])):
        made = damaged(rng, made)
    if rng.random() < 0.03:
        made = rng.choice(
            [made * 2, made[: rng.randint(0, len(made))], b" " + made, made + b"\n", b"[" + made + b"]", b""]
        )
    return made


def damaged(rng: random.Random, made: bytes) -> bytes:
    """The document with up to two bytes lost, and some others in their place."""
    at = rng.randint(0, len(made))
    return made[:at] + rng.choice([b"", *_DAMAGE, rng.randbytes(2)]) + made[at + rng.randint(0, 2) :]


def _document(rng: random.Random, members: list[tuple[str, str]]) -> bytes:
    if rng.random() < 0.2:
        members.append(
            (rng.choice(["other", "", "INT", "a", "Flag"]), rng.choice(["1", '{"int":[{}]}', '"x"', "[[]]"]))
        )
    rng.shuffle(members)
    return json_object(members, rng).encode("utf-8", "surrogatepass")


def json_object(members: list[tuple[str, str]], rng: random.Random) -> str:
    """An object of members, given as JSON, in this order, with or without spaces and escapes in its names."""
    space = rng.choice(["", "", " ", "\t", "\r\n"])
    as_escapes = rng.random() < 0.5
    pairs = [f"{json.dumps(n, ensure_ascii=as_escapes)}{space}:{space}{v}" for n, v in members]
    return "{" + f",{space}".join(pairs) + "}"


def _text(rng: random.Random) -> str:
    if rng.random() < 0.1:
        return rng.choice([*_TEXTS, *_NUMBERS])
    return "".join(rng.choice(_CHARACTERS) for _ in range(rng.choice([0, 1, 3, 9])))


def _double(rng: random.Random, code: str) -> str:
    size = struct.calcsize(code)
    drawn = struct.unpack(code, rng.randbytes(size))[0]
    if drawn != drawn or drawn in (float("inf"), float("-inf")):
        drawn = 1.5
    short = round(rng.uniform(-1000, 1000), rng.randrange(5)) or 0.0
    written = rng.choice(
        [repr(short), repr(drawn), f"{drawn:.9g}", f"{drawn:.25e}", str(rng.getrandbits(70))]
    )
    return written if float(written) else "0.0"


def _decimal(rng: random.Random, precision: int, scale: int) -> str:
    digits = str(rng.getrandbits(rng.randint(1, 120)) % 10 ** rng.randint(1, precision)).rjust(scale + 1, "0")
    whole, fraction = digits[: len(digits) - scale], digits[len(digits) - scale :]
    fraction = rng.choice([fraction, fraction.rstrip("0")])
    return rng.choice(["", "-"]) + whole + (f".{fraction}" if fraction else "")


def _moment(rng: random.Random, type: ScalarType, iso: bool) -> str:
    if type.name == "DATE":
        return str(date(1, 1, 1) + timedelta(days=rng.randrange(3_652_058)))
    seconds = rng.choice([rng.randrange(2**31), rng.randrange(-62_135_596_800, 253_402_300_800)])
    time = str(datetime(1970, 1, 1) + timedelta(seconds=seconds))
    digits = rng.choice([0, type.parameters[0], 3, 6, 9])
    fraction = f".{rng.randrange(10**digits):0{digits}}" if digits else ""
    return time.replace(" ", "T" if iso else " ") + fraction + ("Z" if type.name == "TIMESTAMP_LTZ" else "")

"""What is looked for in the bytes of JSON documents."""

from __future__ import annotations

import pyarrow as pa
import pytest

from bridge.arrow_formats.json import Lines, checked_lines
from bridge.ways import NotThisWay

_NAN = "a document has a number that is not finite"
_NUMBER = "a document may have a number of more than 1,000 characters"
_NAME = "a document has a name of more than 50,000 characters"
_DEEP = "a document is nested 1,000 deep or more"
_DECIMAL = "a document may have a decimal with an unusual exponent or many zeros"
_OBJECT = "a document is not one object"


def lines(*documents: bytes, decimals: bool = True) -> Lines:
    return checked_lines(pa.array(documents, pa.binary()), decimals=decimals)


def nested(depth: int) -> bytes:
    return b'{"x":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (b"", _OBJECT),
        (b"[{}]", _OBJECT),
        (b" {}", _OBJECT),
        (b"{}\n", _OBJECT),
        (b"\xef\xbb\xbf{}", _OBJECT),
        ("{}".encode("utf-16-le"), _OBJECT),
        (b'{"a":"\xff"}', "a document is not valid UTF-8"),
        (b'{"a":"\xed\xa0\x80"}', "a document is not valid UTF-8"),
        (b'{"a":"\xc0\x80"}', "a document is not valid UTF-8"),
        (b"{}\x00{}", "a document has a NUL"),
        (b'{"a":NaN}', _NAN),
        (b'{"a" : -Inf }', _NAN),
        (b'{"a":[Infinity],"b":": NaN"}', _NAN),
        (b'{"a":"\\"","b":\nNaN}', _NAN),
        (b'{"a":1e0003}', _DECIMAL),
        (b'{"a":"1.E-0003"}', _DECIMAL),
        (b'{"a":1e-20}', _DECIMAL),
        (b'{"a":1E-999999999}', _DECIMAL),
        (b'{"a":-0.1234567890123456789e-1}', _DECIMAL),
        (b'{"a":["1e-0020", ".1234567890123456789e-1"]}', _DECIMAL),
        (b'{"a":".1234567890123456789e-1"}', _DECIMAL),
        (rb'{"a":"1e\u002d99"}', _DECIMAL),
        (rb'{"a":"\u0031\u0065+0003"}', _DECIMAL),
        (rb'{"a":"1e\u00300\u00303"}', _DECIMAL),
        (b'{"a":"' + b"0" * 100 + b'1"}', _DECIMAL),
        (b'{"a":"' + rb"\u0030" * 100 + b'1"}', _DECIMAL),
        (b'{"a":' + b"7" * 1001 + b"}", _NUMBER),
        (b'{"a":-1.' + b"1" * 500 + b"e" + b"3" * 500 + b"}", _NUMBER),
        (b'{"' + b"n" * 50_001 + b'":1}', _NAME),
        (b'{"a":{"' + b'\\"' * 50_001 + b'":1}}', _NAME),
        (nested(1001), _DEEP),
        (nested(1001).replace(b'"x"', b'"]]]]"'), _DEEP),
    ],
)
def test_documents_that_need_a_full_decode(document: bytes, reason: str) -> None:
    for documents in ([document], [b'{"a":1}', document, b"{}"]):
        with pytest.raises(NotThisWay) as needed:
            lines(*documents)
        assert str(needed.value) == reason


@pytest.mark.parametrize(
    "document",
    [
        b'{"a":"Information, Infinity and NaN","b":": NaN,", "c": "[-Inf]"}',
        b'{"a":"\\\\","NaN":"\\":Inf,"}',
        b'{"id":"a1e00-4e0012-4e-4211"}',
        b'{"a":1.123456789012345678e-19,"b":-5E-7,"c":1e37}',
        rb'{"phone":"\u002B491e003","name":"\u00e9"}',
        b'{"a":1e003}',
        b'{"a":' + b"7" * 300 + b"}",
        b'{"a":"' + b"x7" * 20_000 + b'","b":[' + b'{"c":1},' * 9000 + b'"]"]}',
        b'{"a" : "' + b"x" * 100_000 + b'", "b":"' + b'\\"' * 50_000 + b'"}',
        nested(900) + b" " * 300 + b"}",
        '{"ä":"名😀"}'.encode(),
    ],
    ids=range(11),
)
def test_documents_that_are_no_reason(document: bytes) -> None:
    assert lines(document, b"{}").data == document + b"\n{}"


def test_decimals_are_looked_for_only_where_there_are_some() -> None:
    assert lines(b'{"a":1e0003}', decimals=False).data == b'{"a":1e0003}'


def test_documents_are_in_blocks_only_where_each_is_one_line() -> None:
    many = [b'{"a":%d}' % n for n in range(100_000)]
    small = lines(*many)
    assert small.data.split(b"\n") == many and small.block_size < len(small.data) // 4
    for document in (b'{"a":\n1}', b'{"a":\r1}'):
        assert lines(*many, document).block_size > len(small.data)
    parts = b'{"a":["' + b'","'.join([b"x" * 1000] * 500) + b'"]}'
    assert lines(*many, parts).block_size > len(parts)

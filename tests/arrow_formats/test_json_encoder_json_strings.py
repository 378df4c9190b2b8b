"""JSON strings as Jackson writes them; `test_record_encoder` compares drawn ones with Spark's."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from bridge.arrow_formats.json_encoder import escaped, quoted

_ESCAPED = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


@pytest.mark.parametrize("type", [pa.string(), pa.large_string()])
def test_every_character_that_is_escaped(type: pa.DataType) -> None:
    characters = [*map(chr, range(0x30)), "\\", "\x7f", "\x80", "\u2028", "\ufeff", "名", "😀"]
    expected = [
        r"\uD83D\uDE00" if c == "😀" else _ESCAPED.get(c, f"\\u{ord(c):04X}" if c < " " else c)
        for c in characters
    ]
    assert escaped(pa.array(characters, type)).to_pylist() == expected
    together = "".join(characters)
    assert escaped(pa.array(["", None, together], type)).to_pylist() == ["", None, "".join(expected)]
    assert quoted(together) == f'"{"".join(expected)}"' and json.loads(quoted(together)) == together


def test_a_part_of_a_column() -> None:
    """The bytes outside of the part do not count."""
    texts = pa.array(['"', "a", None, "é", "\n"])
    assert escaped(texts.slice(1, 3)).to_pylist() == ["a", None, "é"]
    assert escaped(texts.slice(4)).to_pylist() == ["\\n"]
    assert escaped(texts.slice(0, 0)).to_pylist() == []
    assert escaped(pa.nulls(2, pa.string())).to_pylist() == [None, None]


def test_bad_utf_8_is_refused() -> None:
    data = pa.array([b"\xed\xa0\x80\\", None, "é".encode()], pa.binary())
    texts = pa.Array.from_buffers(pa.string(), 3, data.buffers(), data.null_count)
    with pytest.raises(pa.ArrowInvalid):
        escaped(texts)
    assert escaped(texts.slice(1)).to_pylist() == [None, "é"]

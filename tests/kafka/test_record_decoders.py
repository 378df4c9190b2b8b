"""Values are decoded some at a time, since a decoder copies what it is given."""

from __future__ import annotations

import pytest

from bridge.arrow_formats.catalog import arrow_decoder
from bridge.kafka.record_decoders import UpsertDecoder
from bridge.ways import NotThisWay
from tests.arrow_formats.against_spark import spec


def decoder() -> UpsertDecoder:
    value, key = (arrow_decoder(spec("json", {name: "STRING"})) for name in ("text", "id"))
    return UpsertDecoder(key, value, ("id",), ("text",), {})


def test_large_values_are_decoded_in_parts_in_their_order() -> None:
    texts = ["abcdefgh"[n] * (3 << 20) for n in range(8)]
    columns = decoder().values([b'{"text":"%b"}' % text.encode() for text in texts])
    assert columns["text"].to_pylist() == texts
    assert columns["text"].num_chunks == 3


@pytest.mark.parametrize("count", [0, 1, 5])
def test_small_values_are_decoded_at_once(count: int) -> None:
    columns = decoder().values([b'{"text":"%d"}' % n for n in range(count)])
    assert columns["text"].to_pylist() == [str(n) for n in range(count)]
    assert columns["text"].num_chunks <= 1


def test_a_value_of_a_later_part_is_refused_as_one_of_the_first() -> None:
    good = b'{"text":"%b"}' % (b"x" * (9 << 20))
    with pytest.raises(NotThisWay, match="a document is not one object"):
        decoder().values([good, b"[]"])

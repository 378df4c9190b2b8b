"""Bad UTF-8 as Java reads it; `test_record_encoder` compares drawn bytes with Spark's."""

from __future__ import annotations

import itertools

import pytest
from pyspark.sql import SparkSession

from bridge.arrow_formats.java_utf8 import java_text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("é😀".encode(), "é😀"),
        (b"\xed\xa0\x80|", "\ufffd|"),
        (b"\xed\xa0|", "\ufffd|"),
        (b"\xe0\x80|", "\ufffd\ufffd|"),
        (b"\xf0\x9f\x98|", "\ufffd|"),
        (b"\xf4\x90\x80\x80|", "\ufffd" * 4 + "|"),
        (b"\xf5|\xff\xc0\xaf", "\ufffd|\ufffd\ufffd\ufffd"),
        (b"\xe2\x82", "\ufffd"),
        (b"", ""),
    ],
)
def test_what_one_replacement_stands_for(data: bytes, text: str) -> None:
    assert java_text(data) == text


def test_all_sequences_of_telling_bytes(spark: SparkSession) -> None:
    """Every sequence of up to four bytes from the ends of what UTF-8 distinguishes, and one more after it."""
    telling = [0x61, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC1, 0xC2, 0xE0, 0xED, 0xEF, 0xF0, 0xF4, 0xF5]
    made = [bytes(some) for size in (1, 2, 3, 4) for some in itertools.product(telling, repeat=size)]
    java = spark.sparkContext._jvm.java.lang.String  # type: ignore[union-attr]
    whole = b"\n".join(made)
    assert [java_text(data) for data in made] == java(whole, "UTF-8").split("\n")

"""Decimals as Java writes them; `test_record_encoder` compares drawn ones with Spark's."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from bridge.arrow_formats.json_encoder import decimal_texts


@pytest.mark.parametrize(
    ("precision", "scale", "number", "text", "plain"),
    [
        (10, 2, "1.50", "1.5", "1.50"),
        (10, 2, "-0.50", "-0.5", "-0.50"),
        (10, 2, "0", "0", "0.00"),
        (10, 2, "100", "1E+2", "100.00"),
        (10, 2, "-1230", "-1.23E+3", "-1230.00"),
        (10, 2, "10.01", "10.01", "10.01"),
        (38, 0, "9" * 37 + "0", f"9.{'9' * 36}E+37", "9" * 37 + "0"),
        (38, 38, f"0.{'9' * 38}", f"0.{'9' * 38}", f"0.{'9' * 38}"),
        (38, 38, "1E-38", "1E-38", f"0.{'0' * 37}1"),
        (9, 7, "0.0000010", "0.000001", "0.0000010"),
        (9, 7, "-0.0000002", "-2E-7", "-0.0000002"),
        (9, 9, "0", "0", "0.000000000"),
    ],
)
def test_texts(precision: int, scale: int, number: str, text: str, plain: str) -> None:
    values = pa.array([None, Decimal(number), Decimal(number)], pa.decimal128(precision, scale))
    assert decimal_texts(values, plain=False).to_pylist() == [None, text, text]
    assert decimal_texts(values.slice(1), plain=True).to_pylist() == [plain, plain]

"""What both kinds of decoders know of change documents."""

from __future__ import annotations

import pytest

from bridge.format_rules.change_documents import CANAL, DEBEZIUM, before_image_type, null_is_not_absent
from bridge.schema import RowType
from tests.formats.support import row_type, scalar

_INT, _REQUIRED = scalar("INT"), scalar("INT").required()
_ROW = row_type(id=_INT, name=scalar("STRING"), price=_INT)


def test_only_the_key_s_fields_of_a_before_image_are_read() -> None:
    assert before_image_type(_ROW, ("price", "id")).names == ("id", "price")
    assert before_image_type(_ROW, ()) == _ROW
    assert before_image_type(_ROW, ("only_in_the_record_key",)) == _ROW


@pytest.mark.parametrize(
    ("row", "key", "expected"),
    [
        (row_type(a=_INT, b=_INT), ["a"], False),
        (row_type(a=_REQUIRED, b=_REQUIRED, c=_INT), ["a", "b"], False),
        (row_type(a=_REQUIRED, b=_INT, c=_INT), ["a", "b"], True),
        (row_type(a=_REQUIRED), ["a"], True),
        (row_type(a=_INT, b=_INT), [], True),
    ],
)
def test_whether_null_may_differ_from_absent(row: RowType, key: list[str], expected: bool) -> None:
    assert null_is_not_absent(row, before_image_type(row, key)) is expected


def test_all_operations_are_known() -> None:
    assert DEBEZIUM.known == ("c", "r", "u", "d")
    assert CANAL.known == ("INSERT", "UPDATE", "DELETE", "CREATE")

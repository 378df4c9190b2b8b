"""Comparisons of each pair of types by each operator, over the columns of the corpus, and with constants."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

_FAMILIES = (
    ("i", "t", "h", "l", "f", "d", "m", "m2", "n0"),
    ("text", "ch", "vc"),
    ("bytes", "bi", "vb"),
    ("ts", "ts6", "lz"),
    ("day",),
    ("b",),
    ("texts",),
    ("integers",),
)
_SECOND = {"i": "i2", "l": "l2", "d": "d2", "text": "text2", "b": "b2", "texts": "texts2"}
_PAIRS = (
    *("{0} = {1}", "{0} <> {1}", "{0} < {1}", "{0} > {1}", "{0} <= {1}", "{0} >= {1}"),
    *("{0} IS DISTINCT FROM {1}", "{0} IS NOT DISTINCT FROM {1}", "{0} BETWEEN {1} AND {1}"),
    *("{0} IN ({1})", "{0} NOT IN ({1}, {0})", "NULLIF({0}, {1})", "CASE {0} WHEN {1} THEN 1 ELSE 2 END"),
)
_CONSTANTS = {
    "i": ("5", "2.5", "2.0", "5000000000", "-1", "NULL"),
    "t": ("1", "300", "-1", "1.0"),
    "l": ("2", "2.5", "-7"),
    "f": ("0.1", "1", "1.5", "1E0"),
    "d": ("0.1", "1", "1E0"),
    "m": ("1.25", "1.255", "10", "123456789012", "-1.49"),
    "m2": ("1", "2.5"),
    "text": ("'hello'", "''"),
    "ch": ("'12'", "'12  '", "'true'"),
    "vc": ("'17'", "'17 '"),
    "bytes": ("X'00'",),
    "bi": ("X'6869'", "X'69'"),
    "vb": ("X'00'", "X''"),
    "day": ("DATE '2024-02-29'", "'2024-02-29'", "'1970-01-01'"),
    "ts": (
        *("TIMESTAMP '2024-02-29 12:00:00'", "TIMESTAMP '1970-01-01 00:00:00.0001'", "'2024-02-29 12:00:00'"),
        *("'2024-02-29'", "'1969-12-31 23:59:59.999'"),
    ),
    "ts6": ("'2024-02-29 12:00:00'", "'1969-12-31 23:59:59.999999'", "'1969-12-31 23:59:59.9999999'"),
    "lz": ("'2024-02-29 12:00:00'", "'2024-02-29'"),
    "b": ("TRUE", "FALSE"),
    "texts": ("ARRAY['z']", "ARRAY['b', NULL]"),
    "integers": ("ARRAY[7]", "ARRAY[1, 3, 1]"),
}
_TWO = ("{0} IN ({1}, {2})", "{0} NOT IN ({1}, {2})", "{0} = {1} OR {0} = {2}", "{0} BETWEEN {1} AND {2}")
_ROWS = (
    *("ROW(c_i, c_text) = ROW(c_i2, c_text2)", "NOT ROW(c_i, c_text) = ROW(c_i2, c_text2)"),
    *("ROW(c_i, c_i2) IN (ROW(c_i2, c_i), ROW(c_i, c_i2))", "ROW(c_i, c_i2) NOT IN (ROW(1, 2), ROW(0, 3))"),
    *("ROW(c_d, c_l) = ROW(c_d2, c_l2)", "ROW(c_texts) = ROW(c_texts2)", "NULLIF(ROW(c_i), ROW(c_i2))"),
    *("ROW(c_b) IN (ROW(TRUE))", "NOT ROW(c_i, c_l) = ROW(c_i2, c_l2)"),
    *("CASE ROW(c_i, c_i2) WHEN ROW(1, 2) THEN 1 WHEN ROW(-7, 2) THEN 2 END", "ROW(c_ts6) = ROW(c_ts6)"),
    *("ARRAY[ROW(c_i, c_text), ROW(c_i2, c_text2)]", "COALESCE(ROW(c_i, c_text), ROW(c_i2, c_text2))"),
    *("IF(c_b, ROW(c_i, c_text), ROW(c_i2, c_text2))", "CASE WHEN c_b THEN ROW(c_i) ELSE ROW(c_i2) END"),
    *("ARRAY[ROW(c_i)] = ARRAY[ROW(c_i2)]", "ARRAY_CONTAINS(ARRAY[ROW(c_i, c_i2)], ROW(c_i, c_i2))"),
    *("IFNULL(ROW(c_i, c_text), ROW(c_i2, c_text2))", "MAP['a', ROW(c_i), 'b', ROW(c_i2)]['a']"),
)
_ARRAYS = (
    *("c_texts = c_texts", "c_texts <> c_texts", "c_texts IS DISTINCT FROM c_texts", "c_texts IN (c_texts)"),
    *(
        "ARRAY[c_i, c_i2] = ARRAY[c_i, c_i2]",
        "ARRAY[c_i, NULL] = ARRAY[c_i, NULL]",
        "ARRAY[c_d] = ARRAY[c_d]",
    ),
    *("NULLIF(c_texts, c_texts)", "CASE c_texts WHEN c_texts THEN 1 ELSE 2 END", "ARRAY[c_f] = ARRAY[c_f]"),
    *("ARRAY[c_texts, c_texts2] = ARRAY[c_texts2, c_texts]", "ARRAY[c_i] = ARRAY[c_i2]"),
    "CASE c_texts WHEN ARRAY['a', 'b', 'c'] THEN 1 WHEN c_texts2 THEN 2 ELSE 3 END",
)
_ITEMS = ("ARRAY[c_d, -c_d]", "ARRAY[-c_d, c_d]", "ARRAY[c_d, c_d2]")
_OF_ITEMS = (
    *("ARRAY_DISTINCT({0})", "ARRAY_MAX({0})", "ARRAY_MIN({0})", "ARRAY_SORT({0})"),
    *("ARRAY_CONTAINS({0}, {1})", "ARRAY_POSITION({0}, {1})", "ARRAY_REMOVE({0}, {1})"),
    *("ARRAY_UNION({0}, ARRAY[{1}])", "ARRAY_INTERSECT({0}, ARRAY[{1}])", "ARRAY_EXCEPT({0}, ARRAY[{1}])"),
)
_OTHERS = (
    *("c_bytes || c_bytes", "c_vb || c_bytes", "c_bi || c_bi", "c_bytes || X'00'", "c_ch || c_vc"),
    *("ARRAY_CONTAINS(ARRAY[c_ts6], c_ts)", "ARRAY_CONTAINS(ARRAY[c_m2], c_m)"),
    *("GREATEST(c_d, c_d2)", "LEAST(c_d, c_d2)", "GREATEST(c_f, c_d)", "LEAST(c_f, c_d)", "NOT (c_d > c_d2)"),
    *("CASE c_text WHEN c_ch THEN 1 WHEN c_vc THEN 2 ELSE 3 END", "c_i IN (1, c_i2, NULL)"),
    *("CASE c_i WHEN NULL THEN 1 WHEN 5 THEN 2 ELSE 3 END", "c_i NOT IN (1, NULL)", "c_l IN (c_i, c_t)"),
)


def comparisons() -> Iterator[str]:
    """Expressions over columns; those that Flink or the bridge refuses are among them."""
    for family in _FAMILIES:
        for left, right in itertools.product(family, repeat=2):
            sides = left, _SECOND.get(left, left) if left == right else right
            yield from (form.format(*(f"c_{side}" for side in sides)) for form in _PAIRS)
    for name, constants in _CONSTANTS.items():
        column = f"c_{name}"
        yield from (form.format(column, c) for c in constants for form in _PAIRS if "BETWEEN" not in form)
        for one, other in itertools.pairwise((*constants, constants[0])):
            yield from (form.format(column, one, other) for form in _TWO)
    yield from _ROWS
    yield from _ARRAYS
    yield from _OTHERS
    for items, form in itertools.product(_ITEMS, _OF_ITEMS):
        yield form.format(items, "c_d")

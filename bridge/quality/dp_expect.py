"""Writes a suite as expectations of Databricks' declarative pipelines: Python with `dp.expect` and a condition in SQL.

A condition is true for each row that the expectation accepts or does not judge, as a gate counts them, and never NULL.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from bridge.formats.sql import literal
from bridge.quality.run import title_of
from bridge.quality.suite import Suite
from bridge.schema import quote

_HEAD = '''"""Expectations of {file}, written by `bridge check --export-dp`: for a pipeline of Databricks.

A row that does not meet them stays in its table, and the pipeline counts it: `dp.expect_or_drop` and
`dp.expect_or_fail` do more.
"""

from pyspark import pipelines as dp

'''
_KNOWN = frozenset(
    "column column_A column_B min_value max_value strict_min strict_max value value_set regex regex_list match_on "
    "or_equal ignore_row_if".split()
)
"""Arguments that are translated; all others, such as `row_condition`, are reasons not to."""


def export(suite: Suite, table: str) -> tuple[str, tuple[str, ...]]:
    """Returns a Python file with the expectations of `suite` for rows of `table`, a name in SQL; and `title (reason)`
    of each expectation that has no condition on a row. The file names these, too.

    Needs no Spark and reads no rows.
    """
    conditions, left = dict[str, str](), list[str]()
    for expectation in suite.expectations:
        config, title = expectation.configuration, title_of(expectation)
        try:
            found = condition_of(config.type, config.kwargs)
        except NoCondition as reason:
            left.append(f"{title} ({reason})")
            continue
        name, number = title, 1
        while name in conditions:
            number += 1
            name = f"{title} ({number})"
        conditions[name] = found
    name = "".join(letter if letter.isalnum() else "_" for letter in suite.name)
    lines = [f"# Not exported: {' '.join(text.split())}" for text in left]
    lines += [f"@dp.expect({_python(title)}, {_python(sql)})" for title, sql in conditions.items()]
    lines += [f"@dp.materialized_view(name={_python(f'{name}_checked')})", f"def {_function(name)}():"]
    lines += [f"    return spark.read.table({_python(table)})  # noqa: F821 (a pipeline has it)", ""]
    return _HEAD.format(file=suite.name) + "\n".join(lines), tuple(left)


class NoCondition(Exception):
    """The reason why an expectation has no condition on a row."""


def condition_of(type: str, kwargs: Mapping[str, Any]) -> str:
    """Returns the condition of an expectation in SQL. Raises NoCondition where there is none."""
    given = {name: value for name, value in kwargs.items() if value is not None}
    if given.pop("mostly", 1) < 1:
        raise NoCondition("has `mostly` below 1, and `dp.expect` judges each row alone")
    made = _CONDITIONS.get(type.removeprefix("expect_"))
    if made is None:
        raise NoCondition("is not a condition on a row in SQL")
    if others := sorted(set(given) - _KNOWN):
        raise NoCondition(f"has {', '.join(f'`{name}`' for name in others)}")
    try:
        return made(given)
    except TypeError as error:
        raise NoCondition(str(error)) from error


def _column(given: Mapping[str, Any], name: str = "column") -> str:
    # A dot leads into a struct, as in Spark's `col`.
    return ".".join(quote(part) for part in str(given[name]).split("."))


def _value(value: object) -> str:
    """A constant, compared as Great Expectations does: a float is a DOUBLE."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return f"{value!r}D"
    if isinstance(value, str):
        return literal(value)
    raise TypeError(f"has a value of type {type(value).__name__}, which is not translated")


def _unless_null(made: Callable[[str, Mapping[str, Any]], str]) -> Callable[[Mapping[str, Any]], str]:
    """Great Expectations does not judge a null."""
    return lambda given: f"{_column(given)} IS NULL OR ({made(_column(given), given)})"


def _in_set(column: str, given: Mapping[str, Any]) -> str:
    return f"{column} IN ({', '.join(map(_value, given['value_set']))})" if given["value_set"] else "FALSE"


def _between(of: str, given: Mapping[str, Any]) -> str:
    bounds = [
        f"{of} {sign}{'' if given.get(f'strict_{end}') else '='} {_value(given[f'{end}_value'])}"
        for end, sign in (("min", ">"), ("max", "<"))
        if f"{end}_value" in given
    ]
    return " AND ".join(bounds) or "TRUE"


def _matches(column: str, regexes: list[str], joined: str) -> str:
    return f" {joined} ".join(f"{column} RLIKE {literal(regex)}" for regex in regexes) or "FALSE"


def _match_list(column: str, given: Mapping[str, Any]) -> str:
    return _matches(column, given["regex_list"], "AND" if given.get("match_on") == "all" else "OR")


def _equal(given: Mapping[str, Any]) -> str:
    a, b = _column(given, "column_A"), _column(given, "column_B")
    either = given.get("ignore_row_if") == "either_value_is_missing"
    return f"{a} IS NULL OR {b} IS NULL OR {a} = {b}" if either else f"{a} <=> {b}"


def _greater(given: Mapping[str, Any]) -> str:
    sign = ">=" if given.get("or_equal") else ">"
    return f"COALESCE({_column(given, 'column_A')} {sign} {_column(given, 'column_B')}, TRUE)"


_CONDITIONS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "column_values_to_not_be_null": lambda given: f"{_column(given)} IS NOT NULL",
    "column_values_to_be_null": lambda given: f"{_column(given)} IS NULL",
    "column_values_to_be_in_set": _unless_null(_in_set),
    "column_values_to_not_be_in_set": _unless_null(lambda c, given: f"NOT ({_in_set(c, given)})"),
    "column_values_to_be_between": _unless_null(_between),
    "column_values_to_match_regex": _unless_null(lambda c, given: _matches(c, [given["regex"]], "OR")),
    "column_values_to_not_match_regex": _unless_null(
        lambda c, given: f"NOT ({_matches(c, [given['regex']], 'OR')})"
    ),
    "column_values_to_match_regex_list": _unless_null(_match_list),
    "column_values_to_not_match_regex_list": _unless_null(
        lambda c, given: f"NOT ({_matches(c, given['regex_list'], 'OR')})"
    ),
    "column_value_lengths_to_be_between": _unless_null(lambda c, given: _between(f"LENGTH({c})", given)),
    "column_value_lengths_to_equal": _unless_null(lambda c, given: f"LENGTH({c}) = {_value(given['value'])}"),
    "column_pair_values_to_be_equal": _equal,
    "column_pair_values_a_to_be_greater_than_b": _greater,
}


def _python(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _function(name: str) -> str:
    return f"checked_{name}" if name[:1].isdigit() or not name else f"{name}_checked"

"""Flink was asked often enough for each function, operator and pair of a cast that the bridge accepts."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache

from benchmarks.flink_vectors.corpus import ARRAYS, COLUMNS, LITERALS, NO_CONSTANTS, literal
from bridge.errors import DdlError
from bridge.expressions.signatures import SIGNATURES, Signature
from bridge.expressions.type_rules import NUMERIC
from tests.expressions.vectors import translated, vectors

_EVERY = COLUMNS | ARRAYS
_TARGETS = {
    **{name: name for name in ("BOOLEAN", *NUMERIC, "STRING", "BYTES", "DATE")},
    **{"DECIMAL": "DECIMAL(5, 1)", "VARCHAR": "VARCHAR(3)", "CHAR": "CHAR(4)"},
    **{f"{name}({p})": f"{name}({p})" for name in ("TIMESTAMP", "TIMESTAMP_LTZ") for p in (0, 3, 6)},
}
_CONSTANT_KINDS = {
    **{"regex": "'l+'", "pattern": "'yyyy'", "digits": "1", "zone": "'UTC'", "bits": "256", "group": "0"},
    **{"flag": "TRUE", "literal": "','", "path": "'$.a'", "charset": "'UTF-8'", "unit": "DAY"},
}
"""Kinds that Spark takes as constants only."""
_CAST = re.compile(r"((?:TRY_)?CAST)\((.*) AS (\w+(?:\([\d, ]+\))?)\)")
_OPERATOR = re.compile(r"(c_\w+|-?\w+|CAST\(.*?\)\)?) ([-+*/%]|=|<>|<|>=|IS (?:NOT )?DISTINCT FROM) (.*)")


def _kind(type: str) -> str:
    """The type without digits and lengths, of which there are eight constants each."""
    return re.split("[(<]", type)[0]


def _name(type: str) -> str:
    """The type, of times with its digits."""
    return type if type.startswith("TIMESTAMP") else _kind(type)


def _operand(text: str) -> str:
    """The type of a column, or of a value as the corpus writes it; empty for other expressions."""
    if text.startswith("c_"):
        return _name(_EVERY[text[2:]][0]) if text[2:] in _EVERY else ""
    if found := re.fullmatch(r"CAST\(.* AS (\w+(?:\([\d, ]+\)|<[^()]*>)?)\)", text):
        return _name(found[1])
    if found := re.fullmatch(r"(DATE|TIMESTAMP|X)? ?'.*'", text):
        return {"TIMESTAMP": "TIMESTAMP(0)", "X": "BYTES", None: "STRING"}.get(found[1], "DATE")
    return "BOOLEAN" if text in ("TRUE", "FALSE") else "INT" if re.fullmatch(r"-?\d+", text) else ""


def _arguments(inside: str) -> list[str]:
    """What commas part, but in brackets and quotes."""
    found, depth, quoted = [""], 0, False
    for sign in inside:
        quoted ^= sign == "'"
        depth += 0 if quoted else (sign in "([") - (sign in ")]")
        if sign == "," and not depth and not quoted:
            found.append("")
        else:
            found[-1] += sign
    return [argument.strip() for argument in found if argument.strip()]


@cache
def _asked() -> tuple[str, ...]:
    return tuple(vector.expression for vector in vectors() if vector.refused is None)


def _values_of(type: str) -> int:
    """How many constants of a type there are, at most as many as are asked for."""
    found = {
        literal(name, row)
        for name, (of, values) in _EVERY.items()
        if _name(of) == type
        for row, value in enumerate(values)
        if value not in NO_CONSTANTS
    }
    return min(LITERALS, len(found))


def _is_accepted(expression: str) -> bool:
    try:
        translated(expression)
    except DdlError:
        return False
    return True


def _column_of(type: str) -> str:
    return next(f"c_{name}" for name, (of, _) in _EVERY.items() if _name(of) == type)


def test_each_pair_of_a_cast_has_columns_and_constants() -> None:
    columns, constants = set(), defaultdict(set)
    for expression in _asked():
        if (found := _CAST.fullmatch(expression)) and (source := _operand(found[2])):
            if found[2].startswith("c_"):
                columns.add((found[1], source, _name(found[3])))
            else:
                constants[found[1], _kind(source), _kind(found[3])].add(expression)
    sources = dict.fromkeys(_name(type) for type, _ in _EVERY.values())
    missing = []
    for verb, source, (target, to) in itertools.product(("CAST", "TRY_CAST"), sources, _TARGETS.items()):
        count = len(constants[verb, _kind(source), _kind(to)])
        is_asked = (verb, source, target) in columns and count >= _values_of(source)
        if not is_asked and _is_accepted(f"{verb}({_column_of(source)} AS {to})"):
            missing.append(f"{verb} {source} AS {target}: {count} constants")
    assert missing == []


def _calls() -> Iterator[tuple[str, str, Sequence[str]]]:
    for expression in _asked():
        if found := re.fullmatch(r"([A-Z][A-Z0-9_]*)\((.*)\)", expression):
            yield expression, found[1], _arguments(found[2])


def _lengths(signature: Signature) -> range:
    return range(max(signature.least, signature.is_open), len(signature.kinds) + 1)


def test_each_function_has_columns_and_constants() -> None:
    columns, constants = set(), defaultdict(set)
    for expression, name, arguments in _calls():
        if any(argument.startswith("c_") for argument in arguments):
            columns.add((name, len(arguments)))
        else:
            constants[name, len(arguments)].add(expression)
    missing = []
    for signature in SIGNATURES:
        for length in _lengths(signature):
            # A function of so many texts is asked with one more.
            keys = [(signature.name, length + n) for n in range(1 + signature.is_open)]
            count = max(len(constants[key]) for key in keys)
            is_asked = any(key in columns for key in keys) and count >= LITERALS
            usual = ", ".join(map(_usual, signature.kinds_of(length)))
            if length and not is_asked and _is_accepted(f"{signature.name}({usual})"):
                missing.append(f"{signature.name} with {length} arguments: {count} constants")
    assert missing == []


def test_each_type_of_an_argument_is_given() -> None:
    given = {
        (name, place, _family(_operand(argument)))
        for _, name, arguments in _calls()
        for place, argument in enumerate(arguments)
    }
    families = {_family(_name(type)): name for name, (type, _) in reversed(_EVERY.items())}
    missing = []
    for signature in SIGNATURES:
        kinds = signature.kinds_of(max(_lengths(signature)))
        usual = [_usual(kind) for kind in kinds]
        for place, family in itertools.product(range(len(kinds)), families):
            if kinds[place] in _CONSTANT_KINDS or (signature.name, place, family) in given:
                continue
            arguments = [*usual[:place], f"c_{families[family]}", *usual[place + 1 :]]
            if kinds[place] == "value":
                arguments = [f"c_{families[family]}"] * len(kinds)
            if _is_accepted(f"{signature.name}({', '.join(arguments)})"):
                missing.append(f"{signature.name}, argument {place + 1}: {family}")
    assert missing == []


def _family(type: str) -> str:
    """Types that no function tells apart are one."""
    name = type.partition("(")[0]
    return {"CHAR": "STRING", "VARCHAR": "STRING", "BINARY": "BYTES", "VARBINARY": "BYTES"}.get(name, name)


def _usual(kind: str) -> str:
    name = {"number": "i", "exact": "i", "real": "d", "moment": "ts", "item": "text", "value": "text"}.get(
        kind, kind
    )
    return _CONSTANT_KINDS.get(kind, f"c_{name}")


def test_each_operator_has_each_type_on_both_sides() -> None:
    given: set[tuple[str, int, str]] = set()
    constants = defaultdict(set)
    for expression in _asked():
        if found := _OPERATOR.fullmatch(expression):
            sides = _operand(found[1]), _operand(found[3])
            given |= {(found[2], n, _family(side)) for n, side in enumerate(sides)}
            if "c_" not in expression and all(sides):
                constants[found[2]].add(expression)
    missing = [
        f"{sign}, {('left', 'right')[n]}: {type}"
        for sign, n, type in itertools.product("+-*/%", (0, 1), NUMERIC)
        if (sign, n, type) not in given and _is_accepted(_both(sign, n, _column_of(type)))
    ]
    every = dict.fromkeys(_family(_name(type)) for type, _ in COLUMNS.values())
    missing += [
        f"{sign}, {('left', 'right')[n]}: {type}"
        for sign, n, type in itertools.product(("=", "<>", "<", ">="), (0, 1), every)
        if (sign, n, type) not in given
    ]
    missing += [f"{sign}: {len(of)} constants" for sign, of in constants.items() if len(of) < LITERALS]
    assert missing == []


def _both(sign: str, place: int, column: str) -> str:
    return f"{column} {sign} c_i" if not place else f"c_i {sign} {column}"

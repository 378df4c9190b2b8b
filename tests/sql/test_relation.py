"""The keys of a relation after a projection."""

from __future__ import annotations

from bridge.sql.relation import project_keys
from bridge.sql.terms import column_term

A, B, C = (column_term(i) for i in range(3))


def test_a_key_that_is_kept() -> None:
    assert project_keys([frozenset({A, B})], {A: [1], B: [0]}) == {frozenset({A, B})}


def test_a_key_that_is_lost() -> None:
    assert project_keys([frozenset({A, B})], {A: [0]}) == frozenset()


def test_a_column_that_is_selected_twice() -> None:
    assert project_keys([frozenset({A})], {A: [0, 2]}) == {frozenset({A}), frozenset({C})}


def test_an_equal_column_stands_in() -> None:
    assert project_keys([frozenset({A})], {B: [0]}, {A: {B}}) == {frozenset({A})}


def test_the_empty_key_is_kept() -> None:
    assert project_keys([frozenset()], {}) == {frozenset()}

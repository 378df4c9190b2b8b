"""Parsing Avro schemas: names, namespaces, and what is no schema."""

from __future__ import annotations

import json

import pytest

from bridge.errors import DefinitionError
from bridge.format_rules.avro_schema import parse


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not known"),
        ('"nothing"', "the type 'nothing' is not known"),
        ('{"type": "record", "name": "a"}', "at or below 'fields'"),
        ('{"type": "record", "name": "a", "fields": [{"name": "x", "type": "b"}]}', "'b' is not known"),
        (
            '[{"type": "fixed", "name": "a", "size": 1}, {"type": "fixed", "name": "a", "size": 2}]',
            "defined twice",
        ),
        ("{}", "not an Avro schema"),
        ("7", "not an Avro schema"),
    ],
)
def test_what_is_no_schema_is_an_error_with_the_reason(text: str, words: str) -> None:
    with pytest.raises(DefinitionError, match=f"^'avro-confluent.schema': .*{words}"):
        parse(text, "'avro-confluent.schema'")


def test_names_are_resolved_in_namespaces_and_recursively() -> None:
    tree = {
        "type": "record",
        "name": "a.Tree",
        "fields": [
            {"name": "leaf", "type": {"type": "enum", "name": "Leaf", "symbols": ["X"]}},
            {"name": "next", "type": ["null", "Tree"]},
            {"name": "again", "type": "a.Leaf"},
        ],
    }
    leaf, following, again = parse(json.dumps(tree), "it").fields
    assert (leaf.node.full_name, again.node.full_name) == ("a.Leaf", "a.Leaf")
    assert following.node.branches[1].full_name == "a.Tree"
    assert parse("string", "it").kind == "string"

"""Statements are separated by `;`, outside of strings, names and comments."""

from __future__ import annotations

import pytest

from bridge.ddl.tokens import Source
from bridge.errors import DdlError
from bridge.sql.split import split


def texts(script: str) -> list[str]:
    return [" ".join(t.text for t in part.tokens[:-1]) for part in split(Source(script, "t.sql"))]


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("", []),
        (" ; ;\n-- nothing\n", []),
        ("a b; c", ["a b", "c"]),
        ("a;;b;", ["a", "b"]),
        ("a ';' b; c", ["a ; b", "c"]),
        ("a 'it''s; one' b", ["a it's; one b"]),
        ("a `x;``y`; b", ["a x;`y", "b"]),
        ("a -- no; end\nb; c", ["a b", "c"]),
        ("a // no; end\nb; c", ["a b", "c"]),
        ("a /* no; end\n; */ b; c", ["a b", "c"]),
        ("\ufeffa;\r\nb;\r\n", ["a", "b"]),
    ],
)
def test_statements(script: str, found: list[str]) -> None:
    assert texts(script) == found


def test_offsets_are_those_of_the_script() -> None:
    first, second = split(Source("a b;\n  c d;", "t.sql"))
    assert [t.start for t in second.tokens] == [7, 9, 10]
    assert str(second.source.error("here", second.tokens[1].start)) == "t.sql:2:5: here"
    assert [t.text for t in first.without(1).tokens] == ["b", ""]
    assert second.cursor().token.text == "c"


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (
            "a;\nb 'c",
            "t.sql:2:3: this string is not closed; end it with ' (a quote within the string is written '')",
        ),
        ("a; /* b", "t.sql:1:4: this comment is not closed; end it with */"),
        (
            "a;\n b /*+ OPTIONS('x' = 'y') */ c",
            "t.sql:2:4: hints (/*+ ... */) are not supported; write options into WITH of the table, and "
            "remove the hint",
        ),
    ],
)
def test_refused(script: str, message: str) -> None:
    with pytest.raises(DdlError) as error:
        texts(script)
    assert str(error.value) == message


@pytest.mark.parametrize(
    "script", ["a -- /*+ no hint */\nb", "a // /*+ no hint */\nb", "a '/*+ no hint */'", "a + b"]
)
def test_no_hints(script: str) -> None:
    assert len(texts(script)) == 1

"""JAAS configurations are parsed as in Java."""

from __future__ import annotations

import pytest

from bridge.errors import OptionError
from bridge.options.properties.sasl import jaas_text, parse_jaas

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (f'{_PLAIN} username="a b" password="x;y";', {"username": "a b", "password": "x;y"}),
        (rf'{_PLAIN} username="a" password="q\"\\q";', {"username": "a", "password": 'q"\\q'}),
        (rf"{_PLAIN} username=\"a\" password=\"b=c\";", {"username": "a", "password": "b=c"}),
        (f"{_PLAIN}\n  username=a\n  password='it''s';", None),
        (f"{_PLAIN};", {}),
        (r'com.example.Module optional flag=true tab="a\tb" ;', {"flag": "true", "tab": "a\tb"}),
    ],
)
def test_jaas_is_read_as_java_reads_it(text: str, options: dict[str, str] | None) -> None:
    """Quotes, escapes, the backslashed quotes of Flink's manual; what is written for Java reads the same."""
    if options is None:
        with pytest.raises(OptionError):
            parse_jaas(text)
        return
    assert parse_jaas(text)[2] == options
    assert parse_jaas(jaas_text(text))[2] == options

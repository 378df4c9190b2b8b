"""Parses `sasl.jaas.config`, the login module of Kafka's Java client with its credentials."""

from __future__ import annotations

import re

from bridge.errors import OptionError

FLINK_SHADING = "org.apache.flink.kafka.shaded."
"""Package of Kafka's classes in Flink's SQL jar; pipelines copied from Flink name it."""

_CONTROL = {"n": "\n", "r": "\r", "t": "\t"}
_HEAD = re.compile(r"\s*([\w.$]+)\s+(required|requisite|sufficient|optional)\b(.*?);?\s*$", re.S | re.I)
_PAIR = re.compile(
    r"""\s* ([\w.-]+) \s*=\s* (?:
        \\"(?P<pasted>.*?)\\"
        | "(?P<double>(?:[^"\\]|\\.)*)"
        | '(?P<single>(?:[^'\\]|\\.)*)'
        | (?P<bare>[^\s;"'\\]+)
    )""",
    re.S | re.X,
)


def parse_jaas(text: str) -> tuple[str, str, dict[str, str]]:
    """Returns the login module, its flag and its options from a `sasl.jaas.config` with one module.

    Values may be quoted with `"` or `'`, with backslash escapes inside. `\\"` around a value, as in the examples
    of Flink's manual, counts as a quote. Raises OptionError that quotes no part of the text.
    """
    head = _HEAD.match(text)
    if head is None:
        raise OptionError(
            "'properties.sasl.jaas.config' must have the form: <login module> required "
            'username="..." password="...";'
        )
    module, flag, rest = head.groups()
    options: dict[str, str] = {}
    at = 0
    while at < len(rest.rstrip()):
        pair = _PAIR.match(rest, at)
        if pair is None:
            after = list(options)[-1] if options else "the flag"
            raise OptionError(
                f"'properties.sasl.jaas.config' cannot be parsed after {after}: name=\"value\" is expected"
            )
        quoted = pair["double"] if pair["double"] is not None else pair["single"]
        value = _unescape(quoted) if quoted is not None else pair["pasted"]
        options[pair[1]] = pair["bare"] if value is None else value
        at = pair.end()
    return module.removeprefix(FLINK_SHADING), flag, options


def jaas_text(text: str) -> str:
    """Returns the configuration in the form that Kafka's Java client parses."""
    module, flag, options = parse_jaas(text)
    return f"{module} {flag}" + "".join(f' {k}="{_escape(v)}"' for k, v in options.items()) + ";"


def _unescape(quoted: str) -> str:
    return re.sub(r"\\(.)", lambda m: _CONTROL.get(m[1], m[1]), quoted, flags=re.S)


def _escape(value: str) -> str:
    letters = {control: "\\" + letter for letter, control in _CONTROL.items()}
    return "".join(letters.get(c, "\\" + c if c in '"\\' else c) for c in value)

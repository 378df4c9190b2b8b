"""Substitution of references in values."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bridge.config.substitute import Substitution, databricks_secret, environment, given_values
from bridge.errors import DefinitionError
from bridge.secret import Secret


def _lookup(scope: str, key: str) -> str:
    if scope != "kafka":
        raise LookupError("no such scope")
    return f"<{key}>"


@pytest.fixture
def substitution(tmp_path: Path) -> Substitution:
    """A variable A, a file f with a line break at its end, a scope `kafka`."""
    (tmp_path / "f").write_text("from file\n", encoding="utf-8")
    return Substitution({"A": "1", "EMPTY": ""}, str(tmp_path), _lookup)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("${env:A}", "1"),
        ("a${env:A}b${env:A}", "a1b1"),
        ("${env:B:localhost:9092}", "localhost:9092"),
        ("${env:B:}", ""),
        ("${env:EMPTY:x}", ""),
        ("$${env:A}", "${env:A}"),
        ("5$ {}", "5$ {}"),
    ],
)
def test_text(substitution: Substitution, text: str, expected: str) -> None:
    substituted = substitution(text, "here")
    assert type(substituted) is str
    assert substituted == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${file:f}", "from file"),
        ("${secret:kafka/pw}", "<pw>"),
        ("user=${env:A} pw=${secret:kafka/a/b}", "user=1 pw=<a/b>"),
    ],
)
def test_secrets(substitution: Substitution, text: str, expected: str) -> None:
    substituted = substitution(text, "here")
    assert isinstance(substituted, Secret)
    assert substituted.reveal() == expected
    assert repr(substituted) == "'******'"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "${env:B}",
            "here: the environment variable B is not set; set it, give --env B=..., or add a default: ${env:B:...}",
        ),
        ("${file:none}", "here: ${file:none} cannot be read: No such file or directory"),
        ("${secret:other/pw}", "here: ${secret:other/pw}: no such scope"),
        (
            "${secret:kafka}",
            "here: ${secret:kafka} is not a legal reference. Legal references are ${env:NAME}, ",
        ),
        ("${A}", "here: ${A} is not a legal reference"),
        ("${env:}", "here: ${env:} is not a legal reference"),
        ("x${env:A", "here: a '${' has no closing '}'"),
    ],
)
def test_illegal_references(substitution: Substitution, text: str, message: str) -> None:
    with pytest.raises(DefinitionError, match=re.escape(message)):
        substitution(text, "here")


def test_a_file_that_is_not_text_is_not_quoted(substitution: Substitution) -> None:
    Path(substitution.base, "f").write_bytes(b"pass\xff")
    with pytest.raises(DefinitionError, match=r"^here: \$\{file:f\} is not UTF-8 text$"):
        substitution("${file:f}", "here")


def test_secret_scopes_need_databricks() -> None:
    with pytest.raises(
        LookupError,
        match=re.escape("dbutils of Databricks is not available; run on Databricks, or use ${env:...}"),
    ):
        databricks_secret("scope", "key")


def test_values_go_before_environment_variables_within_their_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA", "of the process")
    monkeypatch.setenv("OTHER", "of the process")
    with given_values({"KAFKA": "given"}):
        resolve = Substitution(environment(), "")
        assert resolve("${env:KAFKA}, ${env:OTHER}", "here") == "given, of the process"
    assert Substitution(environment(), "")("${env:KAFKA}", "here") == "of the process"

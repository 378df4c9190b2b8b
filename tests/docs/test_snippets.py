"""Every snippet of README.md and docs/ is checked; one that nobody can check fails."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlglot
import yaml

import bridge
from bridge.options import FORMATS, KAFKA, UPSERT, declared
from bridge.sql import load_script
from bridge.sql.connectors import CHANGE_OPTIONS
from tests.docs import files, jobs
from tests.docs.commands import COMMANDS, OPTIONS, check_bridge, check_line
from tests.docs.pages import BY_HAND, DOCS, Page, Snippet

SNIPPETS = [snippet for page in BY_HAND for snippet in page.snippets]
FOREIGN_OPTIONS = {
    *("--archives", "--deploy-mode", "--files", "--jars", "--packages", "--properties-file", "--py-files"),
}
CONNECTOR_OPTIONS = {*declared(UPSERT), *declared(KAFKA), *CHANGE_OPTIONS}
FORMAT_OPTIONS = {f"{name}.{option.key}" for name, found in FORMATS.items() for option in found.options}
METADATA_KEYS = {f"value.{key}" for found in FORMATS.values() for key in found.metadata}


def _yaml(snippet: Snippet, folder: Path) -> None:
    written = yaml.safe_load(snippet.text)
    if set(written) <= jobs.SECTIONS:
        assert jobs.load(written, folder).tables
        return
    assert set(written) <= files.SECTIONS, f"not sections of a pipeline file: {set(written) - files.SECTIONS}"
    files.load(snippet.page, written, folder)


def _sql(snippet: Snippet, folder: Path) -> None:
    if "CREATE TABLE" in snippet.text and "INSERT INTO" in snippet.text:
        assert load_script("snippet.sql", text=snippet.text, environ={}).inserts
    elif "CREATE TABLE" in snippet.text:
        files.create_table(snippet.text, folder)
    else:
        assert sqlglot.parse_one(snippet.text, read="spark")


def _bash(snippet: Snippet, folder: Path) -> None:
    for line in snippet.text.splitlines():
        check_line(line)


def _python(snippet: Snippet, folder: Path) -> None:
    imports = [node for node in ast.walk(ast.parse(snippet.text)) if isinstance(node, ast.ImportFrom)]
    assert imports
    for node in imports:
        assert node.module == "bridge"
        assert {alias.name for alias in node.names} <= set(bridge.__all__)


def _json(snippet: Snippet, folder: Path) -> None:
    """Expectations are loaded by Great Expectations in tests/quality."""
    assert set(json.loads(snippet.text)) == {"type", "kwargs"}


def _properties(snippet: Snippet, folder: Path) -> None:
    """Their values are compared with the code in tests/test_readme.py."""
    assert all(re.fullmatch(r"spark\.\S+ \S+", line) for line in snippet.text.splitlines())


def _text(snippet: Snippet, folder: Path) -> None:
    """Output and pictures. Command lines in them are checked as others are."""
    for command in re.findall(r"\.venv/bin/(bridge [^\n]+)", snippet.text):
        check_line(command)


CHECKS: dict[str, Callable[[Snippet, Path], None]] = {
    "bash": _bash,
    "json": _json,
    "properties": _properties,
    "python": _python,
    "sql": _sql,
    "text": _text,
    "yaml": _yaml,
}


@pytest.mark.parametrize("snippet", SNIPPETS, ids=str)
def test_a_snippet_does_what_it_shows(snippet: Snippet, tmp_path: Path) -> None:
    assert snippet.language in CHECKS, (
        f"{snippet}: a block of language {snippet.language!r} is not checked; use one of {', '.join(CHECKS)}"
    )
    CHECKS[snippet.language](snippet, tmp_path)


@pytest.mark.parametrize("page", BY_HAND, ids=str)
def test_no_block_is_without_a_language(page: Page) -> None:
    assert page.indented_blocks == [], "indented blocks are not checked; use a fence with a language"


@pytest.mark.parametrize("page", BY_HAND, ids=str)
def test_commands_in_the_text_exist(page: Page) -> None:
    for span in page.code_spans:
        words = span.split()
        if words[0] == "make" and len(words) > 1:
            check_line(span)
        if words[0] == "bridge" and len(words) > 1:
            verbs = [w for w in words[1:] if re.fullmatch("[a-z]+", w)]
            if len(words) - 1 == len(verbs):  # the command alone, or a group of commands
                assert any(f"{verb} ".startswith(f"{' '.join(verbs)} ") for verb in COMMANDS), span
            else:
                check_bridge([re.sub(r"^(VERSION|N)$", "1", word) for word in words[1:]])
        if words[0].startswith("--"):
            assert words[0] in OPTIONS | FOREIGN_OPTIONS, f"no command has {words[0]}"


@pytest.mark.parametrize("page", BY_HAND, ids=str)
def test_keys_of_pipeline_files_in_the_text_exist(page: Page, tmp_path: Path) -> None:
    for span in page.code_spans:
        if not re.match(rf"({'|'.join(files.SECTIONS)}): \S", span):
            continue
        written: dict[str, Any] = yaml.safe_load(span)
        if "..." not in span and not re.search(r"\b[A-Z]\b|ISO", span):
            cdc = "update-messages: pair" in span  # the topic of README.md is an upsert topic
            topic = {"topic": {"ddl_file": "orders_cdc.sql"}} if cdc else {}
            files.load(Page(DOCS / "publish.md") if cdc else page, topic | written, tmp_path)
        for section, value in written.items():
            for key in value if isinstance(value, dict) else ():
                known = f"{section}.{key}"
                assert any(k == known or k.startswith(f"{known}.") for k in files.KEYS), span


@pytest.mark.parametrize("page", BY_HAND, ids=str)
def test_options_in_the_text_are_declared(page: Page) -> None:
    refused = {cell for row in _refused(page) for cell in re.findall(r"'([^']+)' = ", row)}
    for key in {
        key for span in page.code_spans for key in re.findall(r"(?:^|, )'([a-z][\w.-]+)'(?= = '|$)", span)
    }:
        known = key in CONNECTOR_OPTIONS or key.startswith("properties.")
        formats = key.removeprefix("value.").removeprefix("key.") in FORMAT_OPTIONS
        known = known or formats or key in METADATA_KEYS or "." not in key
        assert known or key in refused, f"'{key}' is not an option"


def _refused(page: Page) -> list[str]:
    return [row[0] for row in page.rows("Refused")] if "| Refused |" in page.text else []

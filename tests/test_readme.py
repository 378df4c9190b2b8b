"""README.md is true: its commands exist, its snippets load, its tables equal the code."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
from pathlib import Path

import pytest
import typer

import bridge
from bridge import config, ddl, errors, session
from bridge.cli.app import app

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FENCED = re.findall(r"^```(\w*)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
COMMANDS = {
    f"{name} {sub}" if sub else name: command
    for name, group in typer.main.get_group(app).commands.items()
    for sub, command in getattr(group, "commands", {"": group}).items()
}


def fenced(language: str) -> list[str]:
    return [text for name, text in FENCED if name == language]


def rows(header: str) -> list[list[str]]:
    """The rows of the table whose head begins with `header`, cell by cell."""
    table = re.search(rf"^\| {re.escape(header)} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", README, re.MULTILINE)
    assert table, header
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[1].splitlines()]


def verbs() -> list[tuple[str, list[str]]]:
    """Each row's verb, of two words in a group, and what follows it."""
    words = [shlex.split(row[0].strip("`"))[1:] for row in rows("Command")]
    return [(" ".join(w for w in row if w.islower()), [w for w in row if not w.islower()]) for row in words]


def test_every_make_target_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z-]+)\b", "\n".join(re.findall(r"`[^`\n]+`|^    .*$", README, re.M))))
    assert {"demo", "test", "setup", "wheel"} <= named <= targets


def test_make_help_lists_every_target_that_says_what_it_does() -> None:
    makefile = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony
    assert sorted(phony[1].split()) == sorted(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE))


def test_every_verb_has_its_row() -> None:
    assert sorted(verb for verb, _ in verbs()) == sorted(COMMANDS)


def test_no_other_verb_is_named() -> None:
    code = "\n".join(re.findall(r"`[^`\n]+`|^    .*$", README, re.MULTILINE))
    assert set(re.findall(r"\bbridge ([a-z]+)\b", code)) <= {verb.split()[0] for verb in COMMANDS}


def test_a_verb_s_row_shows_file_exactly_when_it_takes_one() -> None:
    for verb, arguments in verbs():
        assert bool(arguments) == any(p.name == "file" for p in COMMANDS[verb].params), verb


def test_the_exit_codes_are_those_of_the_errors() -> None:
    classes = [e for _, e in inspect.getmembers(errors, inspect.isclass) if issubclass(e, errors.BridgeError)]
    codes = {e.exit_code for e in classes}
    assert [int(row[0]) for row in rows("Exit code")] == sorted({0} | codes)


def test_the_pipeline_file_loads(tmp_path: Path) -> None:
    (snippet,) = fenced("yaml")
    (tmp_path / "conf").mkdir()
    file = tmp_path / "conf" / "orders.yaml"
    file.write_text(snippet, encoding="utf-8")
    definition = config.load(file, environ={})
    assert definition.name == "orders"
    assert definition.delta.path == str(tmp_path / "lake" / "orders")
    assert definition.topic.bootstrap_servers == "localhost:9092"


@pytest.mark.parametrize("snippet", fenced("sql"))
def test_the_ddl_snippets_can_be_run(snippet: str) -> None:
    topic = config.resolve_topic(ddl.parse(snippet))
    config.refuse_topic(topic)
    assert topic.pattern and topic.properties


@pytest.mark.parametrize("snippet", fenced("python"))
def test_python_imports_what_is_there(snippet: str) -> None:
    imports = [node for node in ast.walk(ast.parse(snippet)) if isinstance(node, ast.ImportFrom)]
    assert imports
    for node in imports:
        assert node.module == "bridge"
        assert {alias.name for alias in node.names} <= set(bridge.__all__)


def test_the_settings_for_a_cluster_are_those_the_bridge_makes() -> None:
    (snippet,) = fenced("properties")
    told = dict(line.split() for line in snippet.splitlines())
    assert told.items() <= session._EVERYWHERE.items()
    assert set(session._EVERYWHERE) - set(told) == {"spark.sql.extensions", "spark.sql.catalog.spark_catalog"}


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\((?!http)([^)#]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_files_it_runs_exist() -> None:
    named = re.findall(r"\b(?:jobs|conf)/\w+\.\w+", README)
    assert named
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_the_demo_s_table_has_the_rows_shown() -> None:
    shown = re.search(r"<!-- demo output -->\n```\n(.*?)```", README, re.DOTALL)
    assert shown
    labels = [line.split("  ")[0].strip() for line in shown[1].splitlines() if re.match(r" *\w.*  ", line)]
    source = (ROOT / "bridge" / "demo" / "run.py").read_text(encoding="utf-8")
    assert len(labels) > 8
    assert [label for label in labels if f'"{label}"' not in source] == []

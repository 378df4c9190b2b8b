"""README.md is true: its commands exist, its pipeline file loads, its tables equal the code."""

from __future__ import annotations

import inspect
import re
import shlex
from pathlib import Path

from bridge import config, errors, session, spark_versions
from tests.docs.commands import COMMANDS
from tests.docs.pages import DOCS, EVERY, ROOT, Page

README = EVERY[0]


def verbs() -> list[tuple[str, list[str]]]:
    """Each row's verb, of two words in a group, and what follows it."""
    words = [shlex.split(row[0].strip("`"))[1:] for row in README.rows("Command")]
    return [(" ".join(w for w in row if w.islower()), [w for w in row if not w.islower()]) for row in words]


def test_make_help_lists_every_target_that_says_what_it_does() -> None:
    makefile = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony
    assert sorted(phony[1].split()) == sorted(re.findall(r"^([a-z0-9-]+):.*## ", makefile, re.MULTILINE))


def test_every_verb_has_its_row() -> None:
    assert sorted(verb for verb, _ in verbs()) == sorted(COMMANDS)


def test_a_verb_s_row_shows_file_exactly_when_it_takes_one() -> None:
    for verb, arguments in verbs():
        assert bool(arguments) == any(p.name in ("file", "files") for p in COMMANDS[verb].params), verb


def test_the_exit_codes_are_those_of_the_errors() -> None:
    classes = [e for _, e in inspect.getmembers(errors, inspect.isclass) if issubclass(e, errors.BridgeError)]
    interrupted = 130
    codes = {0, errors.STALLED, interrupted} | {e.exit_code for e in classes}
    assert [int(row[0]) for row in README.rows("Exit code")] == sorted(codes)


def test_the_versions_are_those_that_are_tested() -> None:
    rows = [[cell.strip("`") for cell in row] for row in README.rows("Spark")]
    assert [(row[0], row[1]) for row in rows] == list(reversed(spark_versions.TESTED))
    pins = dict(re.findall(r"^([\w-]+)==([^;\s]+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    python = re.search(r'requires-python = ">=([\d.]+),<3\.(\d+)"', (ROOT / "pyproject.toml").read_text())
    assert python
    for row in rows:
        assert row[2] == pins["deltalake"]
        assert row[4] == f"{python[1]} to 3.{int(python[2]) - 1}"


def test_the_pipeline_file_loads(tmp_path: Path) -> None:
    (snippet,) = [snippet.text for snippet in README.snippets if snippet.language == "yaml"]
    (tmp_path / "conf").mkdir()
    file = tmp_path / "conf" / "orders.yaml"
    file.write_text(snippet, encoding="utf-8")
    definition = config.load(file, environ={})
    assert definition.name == "orders"
    assert definition.warnings == ()
    assert definition.delta.path == str(tmp_path / "lake" / "orders")
    assert definition.topic.bootstrap_servers == "localhost:9092"


def test_the_settings_for_a_cluster_are_those_the_bridge_makes() -> None:
    (snippet,) = [s.text for s in Page(DOCS / "databricks.md").snippets if s.language == "properties"]
    shown = dict(line.split() for line in snippet.splitlines())
    assert shown.items() <= session.SESSION_SETTINGS.items()
    assert set(session.SESSION_SETTINGS) - set(shown) == {
        "spark.sql.extensions",
        "spark.sql.catalog.spark_catalog",
    }


def test_the_demo_s_table_has_the_rows_shown() -> None:
    shown = README.block_after("demo output")
    labels = [line.split("  ")[0].strip() for line in shown.splitlines() if re.match(r" *\w.*  ", line)]
    source = (ROOT / "bridge" / "demo" / "run.py").read_text(encoding="utf-8")
    assert len(labels) > 8
    assert [label for label in labels if f'"{label}"' not in source] == []

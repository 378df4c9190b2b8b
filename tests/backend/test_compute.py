"""The table of docs/databricks.md: as the code makes it, with all verbs, and nothing that no test shows."""

from __future__ import annotations

import re

import pytest
from pyspark.sql import SparkSession

from bridge.backend import Feature, backend_of
from bridge.backend.compute import COMPUTES, USES, WITHOUT_SPARK, Shown, Use, legend, table
from tests.docs.commands import COMMANDS
from tests.docs.pages import DOCS, ROOT

PAGE = (DOCS / "databricks.md").read_text(encoding="utf-8")


def test_the_page_shows_what_the_code_says() -> None:
    shown = PAGE.partition("<!-- computes -->\n")[2].split("\n\n")
    assert shown[0].splitlines() == table()
    assert shown[1].splitlines() == legend()


def test_each_verb_is_in_the_table_or_needs_no_spark() -> None:
    verbs = {verb for use in USES for verb in re.findall("`(.+?)`", use.verb)}
    assert verbs | WITHOUT_SPARK == set(COMMANDS) and not verbs & WITHOUT_SPARK


@pytest.mark.parametrize("use", USES, ids=lambda use: f"{use.verb} {use.options}")
def test_what_is_said_to_be_run_has_a_test(use: Use) -> None:
    for test in filter(None, (use.classic, use.connect, use.serverless)):
        file, _, name = test.partition("::")
        assert f"def {name or 'test_'}" in (ROOT / file).read_text(encoding="utf-8"), test


def test_nothing_was_run_on_databricks() -> None:
    for compute in (c for c in COMPUTES if c.title.startswith("Databricks")):
        assert Shown.RUN not in {use.shown(compute) for use in USES}


def test_the_table_knows_what_a_session_refuses(spark: SparkSession) -> None:
    """A session of Spark Connect where `test_connect_server` runs this with one."""
    tests = "connect" if "connect" in type(spark).__module__ else "classic"
    for compute in (c for c in COMPUTES if c.tests == tests):
        assert compute.refused == {f: why for f in Feature if (why := backend_of(spark).can(f)) is not None}

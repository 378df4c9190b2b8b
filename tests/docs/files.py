"""Snippets of pipeline files and DDLs made into files that can be loaded."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import yaml

from bridge import config
from bridge.definition import Definition
from tests.docs.pages import EVERY, ROOT, Page

SECTIONS = frozenset(config.json_schema()["properties"])
KEYS = frozenset(
    re.findall(
        r"`([a-z_.-]+)`", "".join(row[0] for row in Page(ROOT / "docs" / "pipeline-file.md").rows("Key"))
    )
)
"""Keys of a pipeline file, dotted, as docs/pipeline-file.md lists them."""

_EXCLUSIVE = ({"path", "table"}, {"ddl", "ddl_file"})
_JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";'
_BASE: dict[str, Any] = yaml.safe_load(next(s.text for s in EVERY[0].snippets if s.language == "yaml"))
"""The pipeline file of README.md, which a snippet of some sections is put into."""


def load(page: Page, written: dict[str, Any], folder: Path) -> Definition:
    """Load `written`, a pipeline file or some sections of one, from `folder`/conf.

    Files that it names are made: DDLs from the SQL of the same page, suites from the one that is shipped. Raises what
    `config.load` does.
    """
    whole = written if "version" in written else _merged(written)
    conf = folder / "conf"
    conf.mkdir(exist_ok=True)
    for name in _named(whole, "ddl_file"):
        (conf / name).write_text(_ddl(page, Path(name).stem), encoding="utf-8")
    for name in (*_named(whole, "suite"), *_named(whole, "gate-suite")):
        (conf / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "expectations" / "orders.json", conf / name)
    file = conf / "orders.yaml"
    file.write_text(yaml.safe_dump(whole, sort_keys=False), encoding="utf-8")
    return config.load(file, environ={}, secrets=lambda scope, key: _JAAS)


def create_table(statement: str, folder: Path) -> Definition:
    """Load a pipeline file with this CREATE TABLE."""
    topic, run = {"ddl": statement}, {"checkpoint": "../lake/_checkpoints/t"}
    written = {"version": 1, "name": "t", "topic": topic, "delta": {"path": "../lake/t"}, "run": run}
    return load(EVERY[0], written, folder)


def _merged(sections: dict[str, Any]) -> dict[str, Any]:
    whole = dict(_BASE)
    for name, section in sections.items():
        base = whole.get(name)
        if not isinstance(base, dict) or not isinstance(section, dict):
            whole[name] = section
            continue
        replaced = {key for group in _EXCLUSIVE if group & set(section) for key in group}
        whole[name] = {key: value for key, value in base.items() if key not in replaced} | section
    return whole


def _named(whole: dict[str, Any], key: str) -> list[str]:
    sections = [section for section in whole.values() if isinstance(section, dict)]
    return [section[key] for section in sections if key in section]


def _ddl(page: Page, table: str) -> str:
    """The CREATE TABLE of `table` on the page; README's where the page has none."""
    there = [snippet.text for snippet in page.snippets if snippet.language == "sql"]
    return next((sql for sql in there if f"CREATE TABLE {table} " in sql), _BASE["topic"]["ddl"])

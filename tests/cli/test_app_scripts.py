"""`bridge validate` of a script in Flink SQL: without Spark, with the exit codes of a pipeline file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bridge.cli.app import main
from tests.sql.scripts import SOURCES, sink

SCRIPT = f"{SOURCES}{sink('a STRING, b BIGINT', 'a')}INSERT INTO s\nSELECT city, COUNT(*)\nFROM users GROUP BY city;\n"


def written(folder: Path, text: str) -> str:
    file = folder / "counts.sql"
    file.write_text(text, encoding="utf-8")
    return str(file)


def test_what_it_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", written(tmp_path, SCRIPT)]) == 0
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == "counts: accepted"
    assert " ".join(lines[1].split()) == "statements 5"
    assert any(line.endswith("line 5: aggregate of users; rows are updated, by key (a)") for line in lines)


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "--json", written(tmp_path, SCRIPT)]) == 0
    assert [plan["kind"] for plan in json.loads(capsys.readouterr().out)["inserts"]] == ["aggregate"]


def test_a_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, SCRIPT.replace("SELECT city", "SELECT town"))
    assert main(["validate", file]) == 2
    assert capsys.readouterr().err == (
        f"refused: {file}:6:8: there is no column `town`; known names are `id`, `name`, `city`\n"
    )

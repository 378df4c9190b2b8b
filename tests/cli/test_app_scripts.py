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


def test_explain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, SCRIPT)
    assert main(["run", file, "--explain"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == "counts: plan"
    assert f"state {tmp_path}/bridge-state/counts" in lines


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["run", "orders.yaml"],
            "orders.yaml is neither a script, whose name ends in .sql, nor a job of Flink CDC, which has source",
        ),
        (["run", "FILE", "--every", "soon"], "--every soon: "),
        (["run", "EMPTY"], "the script has no INSERT, so there is nothing to run"),
        (
            ["status", "orders.yaml", "--insert", "s"],
            "--insert and --table are for scripts; orders.yaml is a",
        ),
        (
            ["status", "FILE", "--insert", "x"],
            "--insert x: the script has no INSERT into a topic by that name; it has",
        ),
        (
            ["peek", "FILE", "--table", "s"],
            "--table s: the script reads no topic by that name; it reads users",
        ),
        (
            ["verify", "FILE", "--insert", "s", "--table", "users"],
            "--insert and --table name two pipelines; give one",
        ),
        (["verify", "PRINTED"], "name an INSERT with --insert, or a topic with --table: none"),
    ],
)
def test_what_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    printed = SCRIPT.replace(sink("a STRING, b BIGINT", "a"), sink("a STRING, b BIGINT", "a", "print"))
    files = {"FILE": SCRIPT, "EMPTY": SOURCES, "PRINTED": printed}
    found = [written(tmp_path, files[word]) if word in files else word for word in arguments]
    assert main(found) == 2
    assert message in " ".join(capsys.readouterr().err.split())

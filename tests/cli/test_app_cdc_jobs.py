"""`bridge validate` and `bridge run --explain` of a job of Flink CDC, and its pipelines for the other verbs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bridge.cli.app import main
from bridge.cli.script_pipelines import load_pipeline
from tests.cdc_jobs.jobs import DELTA, KAFKA, SINK, write_shop, written

JOB = DELTA + SINK + "transform:\n  - {source-table: shop.orders, filter: id > 1}\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("job")
    write_shop(folder)
    return folder


def test_validate(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(written(folder, JOB))]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == "job: accepted"
    assert "source delta" in lines
    assert main(["validate", "--json", str(written(folder, JOB))]) == 0
    assert [t["topic"] for t in json.loads(capsys.readouterr().out)["tables"]] == [
        "shop.items",
        "shop.orders",
    ]


def test_a_mistake(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(folder, JOB.replace("id > 1", "idd > 1"))
    for command in (["validate"], ["run"], ["status"]):
        assert main([*command, str(file)]) == 2
        assert capsys.readouterr().err.startswith(
            f"refused: {file}:10:41: there is no column `idd`; did you mean"
        )


def test_explain(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--explain", str(written(folder, JOB))]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == "job: plan"
    assert f"state {folder}/bridge-state/job" in lines
    assert any(line.startswith("INSERT shop.orders: sends a record for each changed row") for line in lines)


def test_pipelines_of_a_job(folder: Path) -> None:
    file = str(written(folder, JOB))
    assert load_pipeline(file, "shop.items", None).name == "job.shop.items"
    assert load_pipeline(file, "shop.orders", None).name == "job.results-shop.orders"
    one = str(written(folder, KAFKA + SINK + "route:\n  - {source-table: shop.orders, sink-table: o}\n"))
    assert load_pipeline(one, None, None).name == "job.results-o"
    assert load_pipeline(one, None, "shop.orders").name == "job.sources-source_shop.orders"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a table of the sink with --insert: shop.items, shop.orders"),
        (
            ["--insert", "x"],
            "--insert x: the job has no such table of the sink; it has shop.items, shop.orders",
        ),
        (
            ["--table", "shop.orders"],
            "--table shop.orders: the job reads no topic by that name; it reads none",
        ),
    ],
)
def test_names_of_pipelines(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["status", str(written(folder, JOB)), *arguments]) == 2
    assert message in " ".join(capsys.readouterr().err.split())

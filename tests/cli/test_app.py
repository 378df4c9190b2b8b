"""The command line: help, errors, results, exit codes, Ctrl-C.

`bridge validate` and `bridge run --explain` of a job of Flink CDC, and its pipelines for the other verbs.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from bridge.cli.app import main
from bridge.cli.script_pipelines import load_pipeline
from bridge.embedded.processes import free_port
from tests.cdc_jobs.jobs import DELTA, KAFKA, SINK, write_shop, written
from tests.pipelines.world import Make, upsert
from tests.reader import messages

VERBS = [
    "ingest",
    "publish",
    "check",
    "verify",
    "resync",
    "replay",
    "maintain",
    "status",
    "validate",
    "txn",
    "schema",
    "broker",
    "demo",
    "topics",
]

DDL = """\
CREATE TABLE orders (id BIGINT, name STRING{key}) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = '{servers}',
  'key.format' = 'json', 'value.format' = 'json'{more})"""


def pipeline_file(
    folder: Path,
    *,
    key: str = ", PRIMARY KEY (id) NOT ENFORCED",
    servers: str = "127.0.0.1:1",
    more: str = "",
) -> Path:
    """A pipeline file, whose statement can have one error."""
    ddl = DDL.format(key=key, servers=servers, more=more).replace("\n", "\n    ")
    file = folder / "orders.yaml"
    file.write_text(
        f"version: 1\nname: orders\ntopic:\n  ddl: |\n    {ddl}\n"
        "delta: {path: table}\nrun: {checkpoint: checkpoint, trigger: available-now}\n"
    )
    return file


def test_help_names_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    for verb in VERBS:
        assert re.search(rf"\b{verb}\b", out), verb
    assert "4 verify found a difference" in out


@pytest.mark.parametrize("verb", [*VERBS, "txn list", "txn abort"])
def test_every_verb_explains_itself(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*verb.split(), "--help"]) == 0
    assert len(capsys.readouterr().out.split()) > 15


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert re.fullmatch(r"bridge \S+|bridge \(not installed\)", capsys.readouterr().out.strip())


def test_an_unknown_verb_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ingst", "x.yaml"]) == 2
    assert "ingst" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"key": ""}, "require to define a PRIMARY KEY constraint"),
        ({"more": ", 'value.fields-includ' = 'ALL'"}, "value.fields-include"),
        ({"more": ", 'sink.parallelism' = 'many'"}, "sink.parallelism"),
    ],
    ids=["no primary key", "unknown option", "wrong type"],
)
def test_a_refused_definition(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, str], words: str
) -> None:
    file = pipeline_file(tmp_path, **change)
    for verb in ("validate", "ingest", "publish"):
        assert main([verb, str(file)]) == 2
        err = capsys.readouterr().err
        assert words in err and "Traceback" not in err and len(err.splitlines()) < 24
    assert sorted(p.name for p in tmp_path.iterdir()) == ["orders.yaml"]


def test_a_missing_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ingest", str(tmp_path / "nowhere.yaml")]) == 2
    assert "nowhere.yaml" in capsys.readouterr().err


def test_validate_needs_neither_spark_nor_kafka(tmp_path: Path) -> None:
    code = (
        "import sys; from bridge.cli.app import main; code = main(['validate', sys.argv[1], '--json']);"
        "loaded = {'pyspark', 'confluent_kafka', 'great_expectations'} & set(sys.modules);"
        "assert not loaded, loaded; sys.exit(code)"
    )
    command = [sys.executable, "-c", code, str(pipeline_file(tmp_path))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["name"] == "orders"


def test_schema_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out)["type"] == "object"


@pytest.mark.slow
def test_an_unreachable_broker_fails_within_thirty_seconds(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    started = time.monotonic()
    assert main(["ingest", str(pipeline_file(tmp_path)), "--quiet"]) == 1
    assert time.monotonic() - started < 30
    err = capsys.readouterr().err
    assert "127.0.0.1:1" in err and "properties.bootstrap.servers" in err and "Traceback" not in err
    assert not (tmp_path / "table").exists()


def test_ctrl_c_stops_after_the_running_batch(make: Make, lake: Path) -> None:
    world = make()
    world.send([upsert(1, "a")])
    world.definition(run={"trigger": "1 s"})
    command = [
        sys.executable,
        "-u",
        "-m",
        "bridge",
        "ingest",
        str(lake / "orders.yaml"),
        "--master",
        "local[1]",
    ]
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("PYSPARK", "SPARK"))}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environ
    ) as process:
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line)
            if "batch 0" in line:
                break
        asked = time.monotonic()
        process.send_signal(signal.SIGINT)
        said += process.stdout.readlines()
        assert process.wait(30) == 0, "".join(said)
    assert time.monotonic() - asked < 15
    text = "".join(said)
    assert "stopping after the current batch" in text and "ingest orders: stopped" in text
    assert world.rows()[0][:2] == (1, "a")


@pytest.mark.slow
def test_the_broker_creates_topics_when_they_are_first_written(tmp_path: Path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "bridge", "broker", "--folder", str(tmp_path), "--port", str(port)]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        producer = Producer({"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0})
        producer.produce("first", b"v", b"k")
        assert producer.flush(120) == 0
        assert [m.value() for m in messages(f"127.0.0.1:{port}", "first")] == [b"v"]
    finally:
        running.send_signal(signal.SIGINT)
        assert running.wait(60) == 0


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

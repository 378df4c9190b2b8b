"""What a command shows goes on from run to run: counters, at an endpoint and at a collector.

`--conf` reaches the reader of a pipeline file on a store, `--env` the references of a file; neither a later command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import typer
from typer.main import get_command

from bridge.cli import main
from bridge.cli.app import app
from bridge.cli.process import conf_settings, metrics_shown
from bridge.console import Screen
from bridge.errors import DefinitionError
from bridge.metrics import BatchReport, RunName, ignore
from bridge.metrics.monitoring import Monitoring, monitored
from bridge.store_options import file_options
from tests.metrics.test_otlp import collector
from tests.metrics.test_prometheus import free_address, scraped
from tests.object_store import BUCKET, KEY, SECRET, ObjectStore


def test_counters_go_on_from_run_to_run(capsys: pytest.CaptureFixture[str]) -> None:
    address = free_address()
    with collector() as (url, taken):
        watched = Monitoring(metrics=address, otlp=url)
        with metrics_shown(Screen(), [watched, watched, Monitoring()]):
            for records in (10, 4, 6):
                with monitored(watched, ignore, RunName("orders", "ingest")) as listen:
                    listen(BatchReport("orders", "ingest", 1, records_in=records))
            found = scraped(address)["bridge_numRecordsIn_total", frozenset()]
    assert (found, taken.metrics["bridge.numRecordsIn"].sum.data_points[0].as_int) == (20, 20)
    assert capsys.readouterr().out == f"metrics: http://{address}/metrics\n"


FILE = "version: 1\nname: orders\ntopic: {ddl: 'CREATE TABLE x'}\ndelta: {path: d}\nrun: {checkpoint: c}\n"


def test_a_file_on_a_store_is_read_with_the_settings_of_the_command(
    object_store: ObjectStore, unique: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    key = f"{unique('conf')}/orders.yaml"
    object_store.client().put_object(Bucket=BUCKET, Key=key, Body=FILE.encode())
    uri, conf = f"s3a://{BUCKET}/{key}", []
    for name, value in object_store.settings().items():
        conf += ["--conf", f"spark.hadoop.{name}={value}"]
    assert main(["ingest", uri, *conf]) == 2
    said = "".join(capsys.readouterr().err.split())
    assert f"{uri}:3:" in said  # the position of an error in its DDL: it has been read
    assert KEY not in said and SECRET not in said
    assert "aws_access_key_id" not in file_options(uri)


def test_pairs_have_an_equals_sign() -> None:
    assert conf_settings(["a=b=c", "d="]) == {"a": "b=c", "d": ""}
    with pytest.raises(DefinitionError, match=r"^--conf a: expected key=value$"):
        conf_settings(["a"])


def commands(group: typer.Typer) -> Iterator[tuple[str, set[str]]]:
    """The commands and the names of their parameters, those of groups within it, too."""
    todo = [("", get_command(group))]
    while todo:
        name, command = todo.pop()
        inner = getattr(command, "commands", None)
        if inner is None:
            yield name, {str(param.name) for param in command.params}
        else:
            todo += [(f"{name} {key}".strip(), value) for key, value in inner.items()]


def test_every_verb_of_a_file_takes_values() -> None:
    found = dict(commands(app))
    of_files = {name for name, params in found.items() if params & {"file", "files"}}
    assert {"ingest", "publish", "check", "run", "top", "peek", "validate", "txn list"} <= of_files
    assert {name for name, params in found.items() if "env" in params} == of_files


def test_a_value_of_the_command_is_one_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ddl = (
        "CREATE TABLE t (id INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 't', "
        "'properties.bootstrap.servers' = '${env:SOME_KAFKA}', 'key.format' = 'json', 'value.format' = 'json', "
        "'properties.ssl.key.password' = '${env:SOME_PASSWORD}', 'properties.client.id' = '${env:SOME_ID}')"
    )
    file = tmp_path / "t.yaml"
    file.write_text(
        f'version: 1\nname: t\ntopic: {{ddl: "{ddl}"}}\ndelta: {{path: d}}\nrun: {{checkpoint: c}}\n'
    )
    given = ["--env", "SOME_KAFKA=broker:9093", "--env", "SOME_PASSWORD=hunter2", "--env", "SOME_ID=a=b"]
    assert main(["validate", str(file), "--json", *given]) == 0
    said = capsys.readouterr().out
    assert "broker:9093" in said and '"a=b"' in said and "hunter2" not in said
    assert main(["validate", str(file), *given[2:]]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "the environment variable SOME_KAFKA is not set; set it, give --env SOME_KAFKA=..." in said
    assert "hunter2" not in said


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--env", "hunter2"], "--env: expected NAME=VALUE, as in --env KAFKA=broker:9092"),
        (["--env", "=hunter2"], "--env: expected NAME=VALUE"),
        (["--env", "A=hunter2", "--env", "A=1"], "--env A=... is given twice; give it once"),
    ],
)
def test_other_values_are_refused_and_not_shown(
    given: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["validate", "none.yaml", *given]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert message in said and "hunter2" not in said

"""What a command shows goes on from run to run: counters, at an endpoint and at a collector.

`--conf` reaches the reader of a pipeline file on a store, and no later command.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bridge.cli import main
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

"""The bundle and the notebook of conf/databricks: the tasks are commands that exist, and the cells run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession

from bridge.demo.orders import changes, write
from bridge.embedded.broker import Broker
from tests.bundles import problems
from tests.reader import messages

FOLDER = Path(__file__).parents[1] / "conf" / "databricks"
JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required username='u' password='p';"


@pytest.fixture
def bundle() -> dict[str, Any]:
    # Without what anchors share: a mistake is planted in one place.
    found: dict[str, Any] = yaml.safe_load(yaml.dump(read(), Dumper=_NoAliases))
    return found


class _NoAliases(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        return True


def read() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FOLDER / "databricks.yml").read_text())
    return found


def test_nothing_else_is_in_the_folder() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {
        "databricks.yml",
        "orders.yaml",
        "orders_publish.yaml",
        "orders_notebook.py",
    }


def test_the_bundle_is_right(bundle: dict[str, Any]) -> None:
    assert list(problems(bundle, FOLDER)) == []
    verbs = [task["task_key"] for job in bundle["resources"]["jobs"].values() for task in job["tasks"]]
    assert verbs == ["ingest", "publish", "check", "verify", "maintain"]


def tasks(bundle: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = bundle["resources"]["jobs"]["orders"]["tasks"]
    return found


def script(bundle: dict[str, Any], number: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = tasks(bundle)[number]["spark_python_task"]
    return found


MISTAKES: list[tuple[Callable[[dict[str, Any]], object], str]] = [
    (lambda b: tasks(b)[0].update(job_cluster="small"), "orders.ingest: no key job_cluster"),
    (lambda b: tasks(b)[0].update(job_cluster_key="large"), "orders.ingest: no cluster large"),
    (lambda b: tasks(b)[1]["depends_on"][0].update(task_key="check"), "orders.publish depends on check"),
    (lambda b: script(b).update(python_file="../../jobs/load.py"), "no script ../../jobs/load.py"),
    (lambda b: script(b)["parameters"].append("--since"), "orders.ingest: No such option: --since"),
    (lambda b: script(b)["parameters"].append("--env"), "Option '--env' requires an argument"),
    (lambda b: script(b)["parameters"].append("--env=KAFKA"), "orders.ingest: --env: expected NAME=VALUE"),
    (lambda b: script(b)["parameters"].__delitem__(slice(1, 3)), "environment variable KAFKA is not set"),
    (
        lambda b: script(b)["parameters"].__setitem__(0, "${workspace.file_path}/orders.yaml"),
        "cannot be read",
    ),
    (
        lambda b: script(b)["parameters"].__setitem__(2, "KAFKA=${var.brokers}"),
        "${var.brokers} is not declared",
    ),
    (lambda b: b["sync"].update(paths=["."]), "ingest.py is not synced"),
    (lambda b: b["variables"].update(spare={"default": "1"}), "variable spare is not used"),
    (lambda b: b["targets"]["prod"]["variables"].pop("mail"), "prod has no value of mail"),
    (lambda b: b["resources"]["jobs"]["orders"].update(max_concurrent_runs=2), "orders: two runs at once"),
    (
        lambda b: b["resources"]["jobs"]["orders_upkeep"]["tasks"][0]["spark_python_task"][
            "parameters"
        ].__setitem__(0, "compare"),
        "orders_upkeep.verify: bridge has no verb compare",
    ),
    (
        lambda b: b["resources"]["jobs"]["orders"]["job_clusters"][0]["new_cluster"].update(
            data_security_mode="USER_ISOLATION"
        ),
        "orders: compute without dedicated access mode",
    ),
    (lambda b: b["artifacts"]["wheel"].update(path="."), "does not install the wheel that the bundle builds"),
]


@pytest.mark.parametrize(("plant", "message"), MISTAKES, ids=[message for _, message in MISTAKES])
def test_a_mistake_is_found(
    bundle: dict[str, Any], plant: Callable[[dict[str, Any]], object], message: str
) -> None:
    plant(bundle)
    found = list(problems(bundle, FOLDER))
    assert any(message in problem for problem in found), found


def cells() -> list[str]:
    """The cells of the notebook in Python."""
    first, _, rest = (FOLDER / "orders_notebook.py").read_text().partition("\n")
    assert first == "# Databricks notebook source"
    parts = [part.strip() for part in rest.split("# COMMAND ----------\n")]
    return [part for part in parts if not part.startswith("# MAGIC %md")]


class Widgets:
    """`dbutils.widgets`, in which the user has chosen these values."""

    def __init__(self, chosen: dict[str, str]) -> None:
        self._chosen, self._shown = chosen, dict[str, str]()

    def text(self, name: str, default: str, label: str) -> None:
        assert label
        self._shown[name] = self._chosen.pop(name, default)

    def get(self, name: str) -> str:
        return self._shown[name]


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """The secret scope `kafka`, as the compute of Databricks has it."""
    runtime = ModuleType("databricks.sdk.runtime")
    runtime.dbutils = SimpleNamespace(  # type: ignore[attr-defined]
        secrets=SimpleNamespace(get=lambda scope, key: {("kafka", "jaas"): JAAS}[scope, key])
    )
    for name in ("databricks", "databricks.sdk"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "databricks.sdk.runtime", runtime)


def notebook(chosen: dict[str, str], **known: object) -> Iterator[dict[str, Any]]:
    """Run the cells one after the other; the names after each of them."""
    widgets = Widgets({**chosen, "folder": str(FOLDER)})
    names: dict[str, Any] = {"dbutils": SimpleNamespace(widgets=widgets), **known}
    for number, cell in enumerate(cells()):
        exec(compile(cell, f"cell {number}", "exec"), names)
        yield names


def test_the_notebook_loads_its_pipelines(secrets: None) -> None:
    run = notebook({"kafka": "broker:9093", "catalog": "main", "schema": "ops"})
    next(run)
    names = next(run)
    assert str(names["orders"].delta) == str(names["orders_out"].delta) == "main.ops.orders"
    assert str(names["orders"].run.state) == "main.ops.bridge_state"
    assert names["orders"].topic.bootstrap_servers == "broker:9093"
    assert "password" not in repr(names["orders"])


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[Broker]:
    """One without topics: the files name theirs."""
    with Broker(tmp_path / "broker") as running:
        yield running


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_notebook_runs(
    secrets: None,
    spark: SparkSession,
    own_broker: Broker,
    unique: Callable[[str], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a local broker, in the catalog of the session; a second run finds nothing new."""
    broker = own_broker
    monkeypatch.setenv("PROTOCOL", "PLAINTEXT")
    monkeypatch.setenv("VOLUMES", str(tmp_path))
    schema = unique("notebook").replace("-", "_")
    spark.sql(f"CREATE SCHEMA {schema}")
    story = list(changes(3, keys=40, count=300))
    present = {key: order for key, order in {c.order_id: c.order for c in story}.items() if order is not None}
    for topic in ("orders", "orders_out"):
        broker.create_topic(topic, partitions=2, config={"cleanup.policy": "compact"})
    write(broker.bootstrap, "orders", story)
    shown, pages = list[Any](), list[str]()
    chosen = {"kafka": broker.bootstrap, "catalog": "spark_catalog", "schema": schema}
    try:
        *_, names = notebook(chosen, spark=spark, display=shown.append, displayHTML=pages.append)
        assert names["ingested"].records_in == 300 and names["published"].records_out == len(present)
        assert names["checked"].verdict.state == "passed"
        assert {row.order_id for row in shown[0].collect()} == set(present)
        assert pages == [(tmp_path / "spark_catalog" / schema / "reports" / "orders.html").read_text()]
        *_, names = notebook(chosen, spark=spark, display=shown.append, displayHTML=pages.append)
        assert (names["ingested"].records_in, names["published"].records_out) == (0, 0)
        assert len({message.key() for message in messages(broker.bootstrap, "orders_out")}) == len(present)
        entries = {row.entry for row in spark.table(f"{schema}.bridge_state").collect()}
        assert {"orders/ingest.lease.json", "orders_publish/publish"} <= entries
        assert any(entry.endswith("/orders_publish.json") for entry in entries)
    finally:
        spark.sql(f"DROP SCHEMA {schema} CASCADE")

"""The bundle and the notebook of conf/databricks: the tasks are commands that exist, and the cells run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession

from bridge import config
from bridge.demo.orders import changes, write
from bridge.embedded.broker import Broker
from tests.bundles import KEYS, jobs_of, problems, refused_on_serverless
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
    for target in ("dev", "prod", "dev_serverless", "prod_serverless"):
        of_target = [task for job in jobs_of(bundle, target).values() for task in job["tasks"]]
        assert [t["task_key"] for t in of_target] == ["ingest", "publish", "check", "verify", "maintain"]
        where = "environment_key" if target.endswith("serverless") else "job_cluster_key"
        assert {where} == {
            key for t in of_target for key in t.keys() & {"environment_key", "job_cluster_key"}
        }


def tasks(bundle: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = bundle["resources"]["jobs"]["orders"]["tasks"]
    return found


def script(bundle: dict[str, Any], number: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = tasks(bundle)[number]["spark_python_task"]
    return found


def at(bundle: dict[str, Any], target: str = "dev", job: str = "orders") -> dict[str, Any]:
    """What a target adds to a job."""
    found: dict[str, Any] = bundle["targets"][target]["resources"]["jobs"][job]
    return found


SERVERLESS = "dev_serverless"
MISTAKES: list[tuple[Callable[[dict[str, Any]], object], str]] = [
    (lambda b: tasks(b)[0].update(job_cluster="small"), "orders.ingest: no key job_cluster"),
    (lambda b: at(b)["tasks"][0].update(job_cluster_key="large"), "orders.ingest: no cluster large"),
    (lambda b: at(b)["tasks"][0].pop("job_cluster_key"), "orders.ingest: no cluster None"),
    (
        lambda b: at(b, SERVERLESS)["tasks"][0].update(environment_key="spark"),
        "orders.ingest: no environment spark",
    ),
    (
        lambda b: at(b, SERVERLESS)["tasks"][0].update(libraries=[{"whl": "../../dist/*.whl"}]),
        "orders.ingest is on serverless compute, which takes no libraries",
    ),
    (
        lambda b: at(b, SERVERLESS)["tasks"][2].pop("disable_auto_optimization"),
        "orders.check: serverless compute repeats it whatever its exit code",
    ),
    (
        lambda b: at(b, SERVERLESS)["environments"][0]["spec"].update(dependencies=["changelog-bridge"]),
        "orders.ingest does not install the wheel that the bundle builds",
    ),
    (
        lambda b: at(b, SERVERLESS)["environments"][0]["spec"].update(environment_vars={"A": "b"}),
        "orders: no key environment_vars",
    ),
    (
        lambda b: (
            script(b).update(python_file="../../jobs/run.py") or script(b)["parameters"].insert(0, "resync")
        ),
        "orders.ingest on serverless compute: `resync` is refused",
    ),
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
        lambda b: at(b)["job_clusters"][0]["new_cluster"].update(data_security_mode="USER_ISOLATION"),
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


_TASKS = ["'sink.parallelism' and partitioners that count tasks are refused"]


@pytest.mark.parametrize(
    ("verb", "old", "new", "refused"),
    [
        ("ingest", "version: 1", "version: 1\ningest: {reader: consumer}", ["`reader: consumer` is refused"]),
        ("publish", "version: 1", "version: 1\ningest: {reader: consumer}", []),
        ("publish", "'key.format'", "'sink.parallelism' = '2', 'key.format'", _TASKS),
        ("check", "  state:", "  checkpoint:", ["`run.state` names no table"]),
        ("txn", "version: 1", "version: 1", ["`txn` is refused"]),
    ],
)
def test_what_serverless_compute_refuses_is_no_task_of_it(
    tmp_path: Path, verb: str, old: str, new: str, refused: list[str]
) -> None:
    file = tmp_path / "orders.yaml"
    text = (FOLDER / "orders_publish.yaml").read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    environ = {"KAFKA": "broker:9093", "CATALOG": "main", "SCHEMA": "sales"}
    definition = config.load(file, environ=environ, secrets=lambda *_: JAAS)
    assert list(refused_on_serverless(verb, definition)) == refused


MODELS = """
import json, sys
from dataclasses import fields
from databricks.bundles.jobs import (
    ClusterSpec, CronSchedule, Environment, Job, JobCluster, JobEnvironment, SparkPythonTask, Task
)
kinds = dict(
    job=Job, schedule=CronSchedule, cluster=JobCluster, new_cluster=ClusterSpec, environment=JobEnvironment,
    spec=Environment, task=Task, script=SparkPythonTask
)
keys, *jobs = json.load(sys.stdin)
unknown = {kind: sorted(set(keys[kind]) - {f.name for f in fields(kinds[kind])}) for kind in kinds}
found = [f"{kind}: {names}" for kind, names in unknown.items() if names]
for job in jobs:
    try:
        Job.from_dict(job)
    except Exception as wrong:
        found.append(str(wrong))
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Callable[[list[Any]], list[str]]:
    """What Databricks' own models of a bundle's jobs say of some keys and jobs. Their package is no need of the tests'
    environment: `databricks` would be a package there."""
    folder = tmp_path_factory.mktemp("models")
    asked = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder)]
    done = subprocess.run([*asked, "databricks-bundles>=1,<2"], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"databricks-bundles cannot be installed: {done.stderr.strip()[-300:]}")

    def found(given: list[Any]) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-c", MODELS],
            env={**os.environ, "PYTHONPATH": str(folder)},
            input=json.dumps(given),
            capture_output=True,
            text=True,
            check=True,
        )
        return list(json.loads(done.stdout))

    return found


@pytest.mark.slow
def test_databricks_own_models_take_the_jobs(
    models: Callable[[list[Any]], list[str]], bundle: dict[str, Any]
) -> None:
    keys = {kind: sorted(names) for kind, names in KEYS.items()}
    jobs = [job for target in bundle["targets"] for job in jobs_of(bundle, target).values()]
    assert len(jobs) == 8 and models([keys, *jobs]) == []
    one = jobs[-2]
    wrong = [
        {**one, "environments": [{**one["environments"][0], "dependencies": []}]},
        {**one, "tasks": [{**one["tasks"][0], "max_retries": {}}]},
        {**one, "job_clusters": [{"new_cluster": {}}]},
    ]
    said = models([{**keys, "task": ["task_keys"]}, *wrong])
    assert len(said) == 4, said
    assert said[0] == "task: ['task_keys']" and "dependencies" in said[1]


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

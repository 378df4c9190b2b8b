"""The scripts in jobs/ run under spark-submit with the built wheel and the shipped pipeline files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from bridge import jars
from bridge.demo.orders import changes, write
from bridge.embedded.broker import Broker
from tests.reader import messages

ROOT = Path(__file__).parents[1]
JOBS = sorted((ROOT / "jobs").glob("*.py"))
PARTITIONS = 2


def submit(
    wheel: Path, script: Path, *arguments: str, cwd: Path, options: Sequence[str] = (), **environ: str
) -> subprocess.CompletedProcess[str]:
    """Runs spark-submit in a folder without files of the project."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYSPARK", "PYTHONPATH", "SPARK"))}
    command = [str(Path(pyspark.__path__[0]) / "bin" / "spark-submit"), "--master", "local[2]"]
    command += ["--properties-file", str(ROOT / "conf" / "spark.conf"), "--py-files", str(wheel), *options]
    return subprocess.run(
        [*command, str(script), *arguments],
        cwd=cwd,
        env={**kept, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", **environ},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=500,
        check=False,
    )


def test_the_wheel_holds_the_package_and_its_data_and_nothing_else(wheel: Path) -> None:
    names = {n for n in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in n}
    wanted = {str(p.relative_to(ROOT)) for p in (ROOT / "bridge").rglob("*") if p.is_file()}
    assert names == {n for n in wanted if "__pycache__" not in n}


@pytest.mark.parametrize("job", JOBS, ids=lambda p: p.stem)
def test_a_job_is_a_verb_in_under_twenty_lines(job: Path) -> None:
    """run.py takes the verb as its first argument. A script `bridge.py` would hide the package from the others."""
    text = job.read_text()
    assert len(text.splitlines()) < 20
    assert job.stem != "bridge"
    assert ("main(sys.argv[1:])" if job.stem == "run" else f'main(["{job.stem}", *sys.argv[1:]])') in text


PROBE = """
import bridge.cli.app
from bridge.session import build_session
print("running", bridge.cli.app.__file__)
spark = build_session("probe")
for key in ("spark.jars", "spark.sql.extensions", "spark.sql.codegen.cache.maxEntries"):
    print("setting", key, spark.conf.get(key))
print("deltas", spark.sql("CREATE TABLE t (id INT) USING delta").count())
print("kept", spark._jvm.java.lang.Thread.currentThread().getContextClassLoader().getResource("own.txt"))
"""


def test_spark_submit_runs_the_wheel_with_the_users_jars_and_settings(wheel: Path, tmp_path: Path) -> None:
    """Guards the other tests, too: the wheel is imported, not the checkout. Nothing is fetched: there is no Ivy."""
    (tmp_path / "probe.py").write_text(PROBE)
    own = tmp_path / "own.jar"
    with zipfile.ZipFile(own, "w") as jar:
        jar.writestr("own.txt", "own")
    given = [own, *jars.fetch("spark", jars.spark_coordinates(), beside_spark=True)]
    done = submit(
        wheel,
        tmp_path / "probe.py",
        options=[
            "--jars", ",".join(map(str, given)),
            "--conf", "spark.sql.extensions=org.apache.spark.sql.OwnExtension",
            "--conf", "spark.sql.codegen.cache.maxEntries=777",
        ],
        cwd=tmp_path,
        BRIDGE_HOME=str(tmp_path / "home"),
        BRIDGE_IVY_SETTINGS=str(tmp_path / "none.xml"),
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert f"running {wheel}" in done.stdout, said
    assert all(jar.name in done.stdout.partition("spark.jars ")[2].partition("\n")[0] for jar in given), said
    extensions = "org.apache.spark.sql.OwnExtension,io.delta.sql.DeltaSparkSessionExtension"
    assert f"setting spark.sql.extensions {extensions}" in done.stdout, said
    assert "setting spark.sql.codegen.cache.maxEntries 777" in done.stdout, said
    assert "deltas 0" in done.stdout and "own.jar!/own.txt" in done.stdout, said


def test_any_verb_runs_by_one_job(wheel: Path, tmp_path: Path) -> None:
    """`status` starts Spark by spark-submit; a master for the verb itself would have no effect."""
    done = submit(wheel, ROOT / "jobs" / "run.py", "status", str(ROOT / "conf" / "orders.yaml"), "--json",
                  "--master", "local[1]", cwd=tmp_path)  # fmt: skip
    said = done.stdout + done.stderr
    assert done.returncode == 2 and "under spark-submit give --master to spark-submit" in said, said


def test_a_refused_definition_is_exit_code_two(wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "orders.yaml").write_text("version: 1\nname: orders\n")
    done = submit(wheel, ROOT / "jobs" / "ingest.py", "orders.yaml", cwd=tmp_path)
    assert done.returncode == 2
    said = done.stdout + done.stderr  # spark-submit passes on both in its standard output
    assert "refused: orders.yaml:1: topic is missing" in said
    assert "Traceback" not in said


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.versions
def test_ingest_publish_and_check(wheel: Path, tmp_path: Path, broker: Broker, spark: SparkSession) -> None:
    story = list(changes(5, keys=200, count=2_000))
    rows = {change.order_id: change.order for change in story}
    present = {key: order for key, order in rows.items() if order is not None}
    for topic in ("orders", "orders_out"):
        broker.create_topic(topic, partitions=PARTITIONS, config={"cleanup.policy": "compact"})
    write(broker.bootstrap, "orders", story)

    where = {"KAFKA": broker.bootstrap, "LAKE": str(tmp_path / "lake")}
    for job, file, *more in (
        ("ingest", "orders"),
        ("publish", "orders_publish"),
        ("check", "orders", "--scheduled"),
        ("verify", "orders_publish"),
    ):
        by_name = ROOT / "jobs" / f"{job}.py"
        script, verb = (by_name, []) if by_name.is_file() else (ROOT / "jobs" / "run.py", [job])
        done = submit(
            wheel,
            script,
            *verb,
            str(ROOT / "conf" / f"{file}.yaml"),
            *more,
            cwd=tmp_path,
            **where,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    table = spark.read.format("delta").load(str(tmp_path / "lake" / "orders"))
    assert sorted(map(tuple, table.collect())) == sorted(map(tuple, present.values()))
    results = spark.read.format("delta").load(str(tmp_path / "lake" / "orders_quality"))
    assert [(r["success"], r["trigger"], r["lag"]) for r in results.collect()] == [(True, "schedule", 0)] * 8
    assert (tmp_path / "lake" / "_reports" / "orders.html").is_file()
    assert fold(broker, "orders_out") == {
        key: (order.status, order.quantity) for key, order in present.items()
    }


def fold(broker: Broker, topic: str) -> dict[int, tuple[str, int]]:
    """Returns the last status and quantity of each order in the topic."""
    found: dict[int, tuple[str, int]] = {}
    for message in messages(broker.bootstrap, topic):
        key, value = message.key(), message.value()
        assert key is not None
        order_id = json.loads(key)["order_id"]
        if value is None:
            found.pop(order_id, None)
        else:
            row = json.loads(value)
            found[order_id] = (row["status"], row["quantity"])
    return found

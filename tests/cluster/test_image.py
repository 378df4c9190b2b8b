"""The image for Kubernetes: hadolint finds nothing, and its steps, run without docker, make a bridge that works."""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
import venv
from pathlib import Path

import pytest

from bridge.demo.orders import changes, write
from bridge.embedded.broker import Broker
from bridge.jars import pyspark_jars
from bridge.spark_versions import installed
from tests.cluster.image import Image
from tests.cluster.standalone import bare_environment
from tests.docs.pages import ROOT, Page
from tests.faults.parquet import Log
from tests.kafka.topics import Fresh

DOCKERFILE = ROOT / "Dockerfile"


def test_hadolint_finds_nothing() -> None:
    command = [f"{sysconfig.get_path('scripts')}/hadolint", "--no-color", str(DOCKERFILE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_has_the_spark_that_the_constraints_name() -> None:
    (tag,) = re.findall(
        r"^FROM apache/spark:([\d.]+)-scala2\.13-java17-python3-", DOCKERFILE.read_text(), re.M
    )
    assert f"pyspark=={tag}\n" in (ROOT / "constraints.txt").read_text()


def test_the_page_names_files_that_the_image_has() -> None:
    page = Page(ROOT / "docs" / "cluster.md").text
    copied = re.findall(r"^COPY (\w+) /opt/bridge/\1$", DOCKERFILE.read_text(), re.MULTILINE)
    named = re.findall(r"/opt/bridge/(\w+)/(\S+?\.(?:py|yaml))", page)
    assert named
    for folder, file in named:
        assert folder in copied and (ROOT / folder / file).is_file()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_its_steps_make_a_bridge_that_ingests(
    fresh: Fresh, tmp_path: Path, wheel: Path, broker: Broker
) -> None:
    """The base image is a Python without packages, and Spark as pyspark ships it."""
    context, root, spark = tmp_path / "context", tmp_path / "root", tmp_path / "root" / "opt" / "spark"
    (context / "dist").mkdir(parents=True)
    (context / "dist" / wheel.name).symlink_to(wheel)
    for name in ("constraints.txt", "jobs", "conf", "expectations"):
        (context / name).symlink_to(ROOT / name)
    spark.mkdir(parents=True)
    (spark / "jars").mkdir()
    for entry in pyspark_jars().parent.iterdir():
        if entry.name != "jars":
            (spark / entry.name).symlink_to(entry)
    for jar in pyspark_jars().glob("*.jar"):
        (spark / "jars" / jar.name).symlink_to(jar)
    venv.EnvBuilder(symlinks=True, with_pip=True).create(root / "usr")
    path = f"{root / 'usr' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    image = Image(DOCKERFILE, context, root, bare_environment(PATH=path, SPARK_HOME=str(spark)))

    assert image.user == "185" and installed()[0] in image.base
    packages = image.run("python3 -m pip list")
    assert "changelog-bridge" in packages and "pyspark" not in packages
    assert list((spark / "jars").glob("delta-spark_*.jar"))
    topic = fresh("orders", partitions=2)
    story = list(changes(7, keys=20, count=100))
    write(broker.bootstrap, topic, story)
    file = image.path("/opt/bridge/conf/orders.yaml")
    file.write_text(file.read_text().replace("'topic' = 'orders'", f"'topic' = '{topic}'"))
    image.environ |= {"KAFKA": broker.bootstrap, "LAKE": str(tmp_path / "lake")}
    job = "/opt/bridge/jobs/run.py ingest /opt/bridge/conf/orders.yaml"
    image.run(f"$SPARK_HOME/bin/spark-submit --master local[2] {job}")
    last = {change.order_id: change.order for change in story}
    log = Log(tmp_path / "lake" / "orders")
    assert [version for version, _ in log.commits()] == [0, 1]
    assert len(log.rows(["order_id"])) == sum(order is not None for order in last.values())

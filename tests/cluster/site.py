"""What a user has who runs the bridge on a cluster: jobs, pipeline files and packages, and no checkout."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sysconfig
import venv
import zipfile
from pathlib import Path

from bridge.demo.orders import Order
from bridge.embedded.broker import Broker
from bridge.pack import pack_bridge
from tests.cluster.standalone import SPARK_HOME, bare_environment
from tests.docs.pages import DOCS, ROOT, Page
from tests.faults.parquet import Log
from tests.object_store import BUCKET, ObjectStore
from tests.reader import messages

_PAGE = Page(DOCS / "cluster.md")
# For two cores and a few rows: code that Spark generates does not pay back what it costs.
_SETTINGS = """
spark.sql.shuffle.partitions    2
spark.ui.enabled                false
spark.sql.codegen.wholeStage    false
spark.sql.codegen.factoryMode   NO_CODEGEN
"""


def commands(comment: str) -> list[str]:
    """The commands of spark-submit on the page, below a comment."""
    return [line for line in _PAGE.block_after(comment).splitlines() if line.startswith("spark-submit ")]


def python_with_packages(folder: Path, *, wheel: Path | None = None, without: str = "") -> Path:
    """Make an environment with the packages of this one, but without its link to the checkout, and return its Python.

    `wheel` is installed into it. Packages whose names begin with `without` are left out.
    """
    venv.EnvBuilder(symlinks=True).create(folder)
    site = next(folder.glob("lib/python*/site-packages"))
    installed = Path(sysconfig.get_path("purelib"))
    if without:
        installed = folder / "packages"
        installed.mkdir()
        for package in Path(sysconfig.get_path("purelib")).iterdir():
            if not package.name.startswith(without):
                (installed / package.name).symlink_to(package)
    # A .pth file in a folder that a .pth file names is not read: so the checkout's is not.
    (site / "packages.pth").write_text(f"{installed}\n")
    if wheel is not None:
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(site)
    return folder / "bin" / "python"


class Site:
    """A folder with what the page's commands name. Topics are new, the publish is exactly-once."""

    def __init__(self, folder: Path, wheel: Path, broker: Broker, topic: str, master: str) -> None:
        self.folder, self.broker, self.topic, self.master = folder, broker, topic, master
        self.lake = folder / "lake"
        for name in ("conf", "expectations", "jobs"):
            shutil.copytree(ROOT / name, folder / name)
        (folder / "dist").mkdir()
        pack_bridge(wheel, folder / "dist" / "bridge.zip")
        for file in (folder / "conf").glob("*.yaml"):
            file.write_text(file.read_text().replace("'topic' = 'orders", f"'topic' = '{topic}"))
        publish = folder / "conf" / "orders_publish.yaml"
        exactly_once = (
            f"'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = '{topic}'"
        )
        publish.write_text(publish.read_text().replace("'connector'", f"{exactly_once}, 'connector'"))
        with (folder / "conf" / "spark.conf").open("a") as settings:
            settings.write(_SETTINGS)
        for name in (topic, f"{topic}_out"):
            broker.create_topic(name, partitions=2, config={"cleanup.policy": "compact"})

    def use_object_store(self, store: ObjectStore) -> None:
        """Add the login of a store to the settings."""
        with (self.folder / "conf" / "spark.conf").open("a") as settings:
            settings.writelines(f"spark.hadoop.{key} {value}\n" for key, value in store.settings().items())

    def upload(self, store: ObjectStore, folder: str) -> None:
        """Put the pipeline files and suites below a folder of the store, and take them away here."""
        for name in ("conf", "expectations"):
            for file in (self.folder / name).iterdir():
                if file.suffix in (".yaml", ".json"):
                    key = f"{folder}/{name}/{file.name}"
                    store.client().put_object(Bucket=BUCKET, Key=key, Body=file.read_bytes())
                    file.unlink()

    def start(self, command: str, python: Path, **environ: str) -> subprocess.Popen[str]:
        """Start a command of the page here; `python` is that of the nodes, and of the driver unless `environ` says."""
        words = [self.master if word == "spark://master:7077" else word for word in shlex.split(command)]
        words[0] = str(SPARK_HOME / "bin" / "spark-submit")
        where = {"KAFKA": self.broker.bootstrap, "LAKE": str(self.lake), "PYSPARK_PYTHON": str(python)}
        return subprocess.Popen(
            words,
            cwd=self.folder,
            env=bare_environment(**(where | environ)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, command: str, python: Path, **environ: str) -> tuple[int, str]:
        """Run a command of the page here; return its exit code and what it printed."""
        running = self.start(command, python, **environ)
        output, _ = running.communicate(timeout=240)
        return running.returncode, output

    def table(self) -> dict[int, Order]:
        """The table, read from its log and its Parquet files without Spark and the bridge."""
        log = Log(self.lake / "orders")
        assert list(log.commits())
        orders = [Order(*row) for row in log.rows(Order._fields)]
        assert len({order.order_id for order in orders}) == len(orders)
        return {order.order_id: order for order in orders}

    def published(self) -> tuple[dict[int, tuple[str, int]], int]:
        """The fold of what readers of committed records see, and how many records they see."""
        found: dict[int, tuple[str, int]] = {}
        count = 0
        for message in messages(self.broker.bootstrap, f"{self.topic}_out"):
            count += 1
            key, value = message.key(), message.value()
            assert key is not None
            order_id = json.loads(key)["order_id"]
            found.pop(order_id, None)
            if value is not None:
                row = json.loads(value)
                found[order_id] = (row["status"], row["quantity"])
        return found, count

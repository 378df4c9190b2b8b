"""`bridge top` and `bridge report` on real pipelines, and in a terminal.

Pipeline files, scripts and jobs are found, and what is in them.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bridge.bridge_folders import publish_log_file
from bridge.cli.app import main
from bridge.cli.page_commands import SCHEMA, watched_files
from bridge.errors import DefinitionError
from bridge.lake.reached_store import reached_store
from bridge.metrics import BatchReport
from bridge.pages.pipeline_line import Line
from bridge.pipelines.ingest.run import ingest
from bridge.pipelines.publish.run import publish
from bridge.publish_progress import PublishProgress
from bridge.store_options import given_settings
from tests.cdc_jobs.jobs import DELTA, KAFKA, SINK, write_shop, written
from tests.history.logs import Log
from tests.object_store import BUCKET, SECRET, ObjectStore
from tests.pages.files import pipeline
from tests.pipelines.world import Make, tombstone, upsert


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main([*arguments]) == 0
    return capsys.readouterr().out


def test_pipelines_that_ran(
    make: Make,
    spark: SparkSession,
    lake: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What both pages say is what the batches reported; a broken file is a line beside them."""
    world = make()
    copy = make()
    reports: list[BatchReport] = []
    for records in ([upsert(n, "a") for n in range(9)], [upsert(1, "b"), tombstone(2), upsert(9, "c")]):
        world.send(records)
        ingest(spark, world.definition(), listener=reports.append)
    publish(spark, copy.definition("copy"))
    world.send([upsert(n, "d") for n in range(5)])
    (lake / "broken.yaml").write_text("topic: [")
    monkeypatch.chdir(lake)

    found = json.loads(printed(capsys, "top", "--once", "--json"))
    assert found["schema"] == SCHEMA
    broken, copied, orders = (Line(**line) for line in found["pipelines"])
    assert (broken.pipeline, broken.state) == ("broken", "unknown")
    assert broken.reason is not None and "broken.yaml" in broken.reason
    assert (copied.pipeline, copied.verb, copied.state, copied.lag) == ("copy", "publish", "stopped", 0)
    assert (orders.pipeline, orders.verb, orders.state, orders.lag) == ("orders", "ingest", "stopped", 5)
    assert sum(orders.lag_by_partition.values()) == 5 and len(orders.lag_by_partition) == 3
    assert orders.engine == reports[-1].engine and orders.version == reports[-1].version
    assert orders.records_per_second == sum(report.records_in for report in reports) / 300
    assert (orders.reason, copied.reason) == (None, None)

    text = printed(capsys, "top", "--once", "orders.yaml")
    assert re.search(r"orders +ingest +stopped +0 +5 ", text)
    assert "█" in text and f"{world.topic}-" in text

    assert "commits: orders-history.html" in printed(capsys, "report", "orders.yaml")
    page = Path("orders-history.html").read_text()
    numbers = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", page))
    assert numbers["Records read"] == str(sum(report.records_in for report in reports)) == "12"
    changed = sum(report.inserted + report.updated + report.deleted for report in reports)
    assert numbers["Rows changed"] == str(changed)
    assert "None: no other writer changed rows." in page


def test_neither_starts_spark(tmp_path: Path) -> None:
    """Not even its modules are imported."""
    pipeline(tmp_path, delta="path: table")
    Log.at(tmp_path / "table").batch(3)
    program = (
        "import sys; from bridge.cli.app import main\n"
        "codes = [main(['report', 'orders.yaml', '--html', 'o.html']), main(['top', '--once', '--json'])]\n"
        "print([name for name in ('pyspark', 'delta', 'great_expectations', 'pandas') if name in sys.modules], codes)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[] [0, 0]"


def test_a_table_and_a_checkpoint_on_s3(
    object_store: ObjectStore,
    tmp_path: Path,
    unique: Callable[[str], str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the login of --conf, in the threads of the page, too."""
    monkeypatch.chdir(tmp_path)
    folder = f"s3a://{BUCKET}/{unique('lake')}"
    settings = {f"spark.hadoop.{name}": value for name, value in object_store.settings().items()}
    with given_settings(lambda: settings):
        stores = [reached_store(f"{folder}/{name}") for name in ("table", "checkpoint-orders")]
    Log(stores[0]).batch(3)
    sent = PublishProgress("orders", "the-table", version=0, batch=0)
    stores[1].create(f"publish/{publish_log_file(0)}", sent.to_json().encode())
    definition = pipeline(tmp_path, delta=f"path: '{folder}/table'")
    text = (tmp_path / "orders.yaml").read_text()
    (tmp_path / "orders.yaml").write_text(text.replace("checkpoint-orders", f"'{folder}/checkpoint-orders'"))
    conf = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    found = json.loads(printed(capsys, "top", "orders.yaml", "--once", "--json", *conf))
    ingested, published = found["pipelines"]
    assert (ingested["version"], ingested["state"]) == (0, "stopped")
    assert (published["version"], published["lag"], published["reason"]) == (0, 0, None)
    printed(capsys, "report", "orders.yaml", *conf)
    assert f"<h1>{folder}" in Path("orders-history.html").read_text().replace("<wbr>", "")
    assert SECRET not in Path("orders-history.html").read_text() + json.dumps(found)
    assert definition.delta.path == f"{folder}/table"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["top", "--json"], "--json prints what is seen once: give --once, too"),
        (["top", "--every", "often"], "--every often: "),
        (
            ["report", "by_name.yaml", "--html", "o.html"],
            "a.b.c is a name in a catalog, which only Spark finds",
        ),
    ],
)
def test_what_is_refused(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    pipeline(tmp_path, "by_name", delta="table: a.b.c")
    assert main(arguments) == 2
    assert words in capsys.readouterr().err


def test_a_page_that_cannot_be_written_or_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipeline(tmp_path)
    (tmp_path / "file").write_text("")
    assert main(["report", f"{tmp_path}/orders.yaml", "--html", f"{tmp_path}/file/o.html"]) == 1
    assert "the history cannot be written" in capsys.readouterr().err
    (tmp_path / "table").write_text("")
    assert main(["report", f"{tmp_path}/orders.yaml", "--html", f"{tmp_path}/o.html"]) == 1
    assert "its log cannot be read" in capsys.readouterr().err


_OWN = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
"""Makes the terminal that of the program: else Ctrl-C is no signal."""


class Terminal:
    """`bridge top` in a terminal of 80 columns."""

    def __init__(self, folder: Path) -> None:
        own, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        command = [sys.executable, "-c", _OWN, sys.executable, "-m", "bridge", "top", "--every", "100ms"]
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm"},
            start_new_session=True,
        )
        os.close(theirs)
        self._own, self.text = own, ""

    def until(self, words: str) -> None:
        deadline = time.monotonic() + 60
        while words not in self.text:
            assert time.monotonic() < deadline, self.text[-2000:]
            if select.select([self._own], [], [], 1)[0]:
                self.text += os.read(self._own, 1 << 16).decode(errors="replace")

    def press(self, keys: str) -> None:
        self.text = ""
        os.write(self._own, keys.encode())

    def end(self) -> int:
        self.until("\x1b[?1049l")  # the screen that was there before
        code = self.process.wait(20)
        os.close(self._own)
        return code


@pytest.mark.parametrize("key", ["q", "\x03"], ids=["q", "Ctrl-C"])
def test_the_page_of_a_terminal(tmp_path: Path, key: str) -> None:
    for name in ("first", "second"):
        pipeline(tmp_path, name)
    terminal = Terminal(tmp_path)
    terminal.until("\x1b[?1049h")
    terminal.until("never ran")
    terminal.until("first.yaml")
    terminal.press("\x1b[B")
    terminal.until("second.yaml")
    terminal.press(key)
    assert terminal.end() == 0


SCRIPT = """\
SET 'bridge.metrics' = '127.0.0.1:9464';
CREATE TABLE views (id BIGINT, region STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ({views});
CREATE TABLE regions (region STRING, n BIGINT, PRIMARY KEY (region) NOT ENFORCED) WITH ({regions});
INSERT INTO regions SELECT region, COUNT(*) AS n FROM views GROUP BY region;
"""


def upsert_options(topic: str) -> str:
    return (
        f"'connector' = 'upsert-kafka', 'topic' = '{topic}', 'properties.bootstrap.servers' = '127.0.0.1:1', "
        "'key.format' = 'json', 'value.format' = 'json'"
    )


def test_those_of_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        DefinitionError, match=r"no pipeline file, script or job in .*; name some: bridge top"
    ):
        watched_files([])
    pipeline(tmp_path)
    for name, text in {
        "broken.yaml": "topic: [",
        "job.yml": "source: {type: kafka}\n",
        "mkdocs.yml": "site_name: x\n",
        "list.yaml": "- 1\n",
        "script.sql": "SELECT",
        "notes.md": "topic:",
    }.items():
        (tmp_path / name).write_text(text)
    assert [file.name for file in watched_files([])] == [
        "broken.yaml",
        "job.yml",
        "orders.yaml",
        "script.sql",
    ]


def test_a_pipeline_file_and_what_is_refused(tmp_path: Path) -> None:
    pipeline(tmp_path)
    file, missing = watched_files(
        [f"{tmp_path}/orders.yaml", f"{tmp_path}/missing.yaml", f"{tmp_path}/orders.yaml"]
    )
    (watched,) = file.load()
    assert (watched.definition.name, watched.verbs, watched.lease) == ("orders", ("ingest", "publish"), None)
    with pytest.raises(DefinitionError, match="cannot be read"):
        missing.load()


def test_the_pipelines_of_a_script(tmp_path: Path) -> None:
    script = tmp_path / "pageviews.sql"
    script.write_text(SCRIPT.format(views=upsert_options("views"), regions=upsert_options("regions")))
    (file,) = watched_files([str(script)])
    ingest, publish = file.load()
    assert (ingest.definition.name, ingest.verbs) == ("pageviews.sources-views", ("ingest",))
    assert (publish.definition.name, publish.verbs) == ("pageviews.results-regions", ("publish",))
    for watched in (ingest, publish):
        assert watched.lease == (f"{tmp_path}/bridge-state/pageviews", "script")
        assert watched.run == ("pageviews", "run")
        assert watched.monitoring is not None
        assert watched.monitoring.metrics == "127.0.0.1:9464"


def test_the_pipelines_of_a_job(tmp_path: Path) -> None:
    (file,) = watched_files([str(written(tmp_path, KAFKA + SINK + "pipeline: {name: shop}\n"))])
    found = {watched.definition.name: watched for watched in file.load()}
    assert [watched.verbs for watched in found.values()] == [("ingest",), ("publish",)]
    assert all(name.startswith("shop.") for name in found)
    for watched in found.values():
        assert watched.lease == (f"{tmp_path}/bridge-state/shop", "job")
        assert watched.run == ("shop", "run")
    write_shop(tmp_path)
    (file,) = watched_files([str(written(tmp_path, DELTA + SINK))])
    assert [watched.verbs for watched in file.load()] == [("publish",), ("publish",)]

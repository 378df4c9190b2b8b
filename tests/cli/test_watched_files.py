"""Pipeline files, scripts and jobs are found, and what is in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.cli.watched_files import watched_files
from bridge.errors import DefinitionError
from tests.cdc_jobs.jobs import DELTA, KAFKA, SINK, write_shop, written
from tests.pages.files import pipeline

SCRIPT = """\
SET 'bridge.metrics' = '127.0.0.1:9464';
CREATE TABLE views (id BIGINT, region STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ({views});
CREATE TABLE regions (region STRING, n BIGINT, PRIMARY KEY (region) NOT ENFORCED) WITH ({regions});
INSERT INTO regions SELECT region, COUNT(*) AS n FROM views GROUP BY region;
"""


def upsert(topic: str) -> str:
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
    script.write_text(SCRIPT.format(views=upsert("views"), regions=upsert("regions")))
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

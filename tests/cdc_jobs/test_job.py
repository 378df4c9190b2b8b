"""What `bridge validate` shows of a job."""

from __future__ import annotations

import json
from pathlib import Path

from bridge.cdc_jobs import as_json, as_rows
from tests.cdc_jobs.jobs import DELTA, SINK, load

JOB = (
    DELTA
    + SINK
    + "  properties.ssl.key.password: ${secret_values.k}\ntransform:\n  - {source-table: shop.orders, filter: id > 1}\n"
)


def test_rows_and_json_show_no_secret(shop: Path) -> None:
    job = load(shop, JOB, {"K": "hunter2"})
    rows, value = as_rows(job), as_json(job)
    assert rows["table shop.items"] == (
        f"{shop}/lake/shop/items, key (id); to topic shop.items as shop.items, its changes as they are"
    )
    assert rows["table shop.orders"].endswith("to topic shop.orders as shop.orders, through the script")
    assert rows["publish job.shop.items"] == "upsert-kafka json, at-least-once, begins at snapshot"
    assert rows["script: INSERT shop.orders"].endswith(
        "projection of source_shop.orders; rows are updated, by key (id)"
    )
    assert [table["direct"] for table in value["tables"]] == [True, False]
    assert value["publishes"][0]["options"]["properties.ssl.key.password"] == "******"
    assert "hunter2" not in json.dumps(value) + json.dumps(rows)


def test_places_of_a_run(shop: Path) -> None:
    job = load(shop, JOB, {"K": "hunter2"})
    assert job.paths == (
        f"{shop}/bridge-state/job",
        f"{shop}/lake/shop/items",
        f"{shop}/lake/shop/orders",
    )
    checked = job.checked(job.publishes[0])
    assert checked.quality is not None and checked.run.monitoring is job.monitoring
    assert checked.quality.suite == str(shop / "expectations" / "job.shop.items.json")

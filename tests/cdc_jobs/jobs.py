"""Jobs for the tests: a folder with Delta tables, and files of jobs in it. Tables are written with delta-rs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from bridge.cdc_jobs import Job, load_job
from bridge.errors import BridgeError

DELTA = """source:
  type: delta
  path: lake
  tables: shop.\\.*
  primary-keys: id
"""
KAFKA = """source:
  type: kafka
  topic: orders
  value.format: debezium-json
  properties.bootstrap.servers: b:1
  ddl: |
    CREATE TABLE shop.orders (
      id BIGINT, name STRING, price DECIMAL(10, 2), PRIMARY KEY (id) NOT ENFORCED
    )
"""
SINK = """sink:
  type: upsert-kafka
  properties.bootstrap.servers: b:1
"""


def write_table(path: Path, columns: Mapping[str, pa.Array]) -> None:
    """Writes a Delta table of one version, with its change data feed on."""
    write_deltalake(str(path), pa.table(dict(columns)), configuration={"delta.enableChangeDataFeed": "true"})


def write_shop(folder: Path) -> None:
    """Writes the tables shop/orders (id, name, price) and shop/items (id, order_id) into `folder`/lake."""
    shop = folder / "lake" / "shop"
    ids = pa.array([1, 2], pa.int64())
    write_table(shop / "orders", {"id": ids, "name": pa.array(["a", "b"]), "price": pa.array([1.5, 2.5])})
    write_table(shop / "items", {"id": ids, "order_id": ids})


def written(folder: Path, text: str) -> Path:
    file = folder / "job.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def load(folder: Path, text: str, environ: Mapping[str, str] | None = None) -> Job:
    """The job `text` in `folder`, with an environment of its own and without secrets of Databricks."""
    return load_job(written(folder, text), environ=environ or {}, secrets=_no_secrets)


def refusal(folder: Path, text: str, environ: Mapping[str, str] | None = None) -> str:
    """The message that `load` raises, without the name of the folder."""
    with pytest.raises(BridgeError) as error:
        load(folder, text, environ)
    return str(error.value).replace(f"{folder}/", "")


def _no_secrets(scope: str, key: str) -> str:
    raise LookupError("there is no Databricks here")

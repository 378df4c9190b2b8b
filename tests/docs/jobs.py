"""Snippets of jobs of Flink CDC made into files that can be loaded, with the Delta tables that they read."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from bridge.cdc_jobs import Job, load_job
from bridge.cdc_jobs.model import JobFile
from tests.cdc_jobs.jobs import write_table
from tests.docs.pages import DOCS, Page

SECTIONS = frozenset(JobFile.model_fields)


def load(written: dict[str, Any], folder: Path) -> Job:
    """Load `written`, a job or some sections of one; the other ones are those of the first job of the page."""
    conf, shop = folder / "conf", folder / "lake" / "shop"
    conf.mkdir(exist_ok=True)
    ids, texts = pa.array([1], pa.int64()), pa.array(["a"])
    write_table(shop / "orders", {"id": ids, "customer": texts, "amount": pa.array([1.5]), "status": texts})
    write_table(shop / "items", {"order_id": ids, "line": ids, "what": texts})
    file = conf / "shop.yaml"
    file.write_text(yaml.safe_dump({**_first_job(), **written}, sort_keys=False), encoding="utf-8")
    return load_job(file, environ={})


@cache
def _first_job() -> dict[str, Any]:
    jobs = [yaml.safe_load(s.text) for s in Page(DOCS / "cdc-jobs.md").snippets if s.language == "yaml"]
    whole: dict[str, Any] = next(job for job in jobs if {"source", "sink"} <= set(job))
    return whole

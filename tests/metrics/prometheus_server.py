"""A server of Prometheus (Debian's package) that scrapes an address."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.metrics.test_prometheus import free_address

needed = pytest.mark.skipif(
    shutil.which("prometheus") is None, reason="Debian's package prometheus is not installed"
)


@contextmanager
def scraping(folder: Path, address: str) -> Iterator[str]:
    """Within the block the server scrapes five times a second; yields its own address."""
    own = free_address()
    (folder / "prometheus.yml").write_text(
        "global: {scrape_interval: 200ms}\nscrape_configs: [{job_name: changelog-bridge, "
        f"static_configs: [{{targets: ['{address}']}}]}}]\n"
    )
    server = subprocess.Popen(
        ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
         f"--web.listen-address={own}", "--log.level=error"],
    )  # fmt: skip
    try:
        yield own
    finally:
        server.terminate()
        server.wait(20)


def asked(server: str, expression: str) -> list[Any]:
    """What a panel's query returns; nothing while the server is not up yet."""
    expression = expression.replace("$pipeline", ".*").replace("$__rate_interval", "10s")
    query = urllib.parse.urlencode({"query": expression})
    try:
        with urllib.request.urlopen(f"http://{server}/api/v1/query?{query}", timeout=10) as answer:
            return list(json.load(answer)["data"]["result"])
    except OSError:
        return []

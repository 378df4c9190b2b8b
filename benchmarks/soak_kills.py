"""Faults of a soak with kills, and the alerts that must fire for them, and no others.

Prometheus (Debian's package) scrapes both processes all the while, with the shipped rules. Their times are a tenth, so
that half an hour sees what five hours would.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from confluent_kafka import Producer

from bridge.embedded.processes import free_port
from bridge.metrics.registry import METRICS, Kind

RULES = Path("conf/observability/rules.yaml")
VERBS = ("ingest", "publish")
_SCALE = 10
_FIRST_SECONDS, _APART_SECONDS, _LAST_SECONDS = 20.0, 120.0, 90.0
"""Before the first fault, between two, and after the last one."""
_DOWN_SECONDS = 60.0
ALERTS: Mapping[tuple[str, str], frozenset[tuple[str, str]]] = {
    ("kill", "ingest"): frozenset(),
    ("kill", "publish"): frozenset(),
    ("down", "ingest"): frozenset({("BridgeDown", "ingest"), ("BridgeNotFresh", "ingest")}),
    ("down", "publish"): frozenset({("BridgeDown", "publish")}),
    ("bad record", "ingest"): frozenset({("BridgeBadRecords", "ingest")}),
}
"""By the kind of a fault and whom it hits: the alerts that it fires, and of whom."""


@dataclass(frozen=True)
class Fault:
    """One fault."""

    after: float
    """Seconds after the stream began."""
    kind: str
    """`kill`: all processes of the verb end at once, and it is started again. `down`: it is started a minute later.
    `bad record`: a record that nobody can decode."""
    verb: str

    @property
    def away_seconds(self) -> float:
        """For how long the verb does not run."""
        return _DOWN_SECONDS if self.kind == "down" else 0.0


def drawn(seed: int, seconds: float) -> list[Fault]:
    """The faults of a soak, in their order: of as many as have room, each kind at least once if there are five."""
    draw = np.random.default_rng(seed)
    room = int((seconds - _FIRST_SECONDS - _LAST_SECONDS) // _APART_SECONDS) + 1
    kinds: list[tuple[str, str]] = []
    while len(kinds) < room:
        kinds += [sorted(ALERTS)[n] for n in draw.permutation(len(ALERTS))]
    times = (_FIRST_SECONDS + number * _APART_SECONDS for number in range(room))
    return [Fault(at, kind, verb) for at, (kind, verb) in zip(times, kinds, strict=False)]


def scaled(rules: str) -> str:
    """The rules with a tenth of their times: of `for`, of ranges, and of limits in seconds."""

    def shorter(found: re.Match[str]) -> str:
        unit = {"s": 1, "m": 60, "h": 3600}[found[3]]
        return f"{found[1]}{int(found[2]) * unit // _SCALE}s{found[4]}"

    rules = re.sub(r"(for: )(\d+)([smh])()", shorter, rules)
    rules = re.sub(r"(\[)(\d+)([smh])(\])", shorter, rules)
    return re.sub(r"(_seconds\S*(?:\[\w+\])?\)*) > (\d+)", lambda f: f"{f[1]} > {int(f[2]) // _SCALE}", rules)


def send_bad_record(bootstrap: str, topic: str, id: int) -> None:
    """Send a record whose value is no document. Raises RuntimeError unless the broker has it."""
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 3})
    producer.produce(topic, b"{", b'{"id":%d}' % id, partition=0)
    if producer.flush(30):
        raise RuntimeError(f"topic {topic}: the broker has not taken the bad record")


class Prometheus:
    """A server that scrapes the verbs at `ports` each second."""

    def __init__(self, folder: Path, ports: Mapping[str, int]) -> None:
        self._folder, self._ports, self._own = folder, ports, free_port()
        self._began = float("nan")

    @contextmanager
    def running(self) -> Iterator[None]:
        """Around the soak. Raises FileNotFoundError where Prometheus is not installed."""
        self._began = time.time()
        self._folder.mkdir()
        (self._folder / "rules.yaml").write_text(scaled(RULES.read_text()))
        targets = ", ".join(f"'127.0.0.1:{port}'" for port in self._ports.values())
        (self._folder / "prometheus.yml").write_text(
            "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [rules.yaml]\n"
            f"scrape_configs: [{{job_name: changelog-bridge, static_configs: [{{targets: [{targets}]}}]}}]\n"
        )
        server = subprocess.Popen(
            ["prometheus", f"--config.file={self._folder}/prometheus.yml",
             f"--storage.tsdb.path={self._folder}/data", f"--web.listen-address=127.0.0.1:{self._own}",
             "--log.level=error"],
        )  # fmt: skip
        try:
            yield
        finally:
            server.terminate()
            server.wait(30)

    def fired(self) -> set[tuple[str, str]]:
        """The alerts that have fired since the start, and whose they were."""
        rows = self._asked(f'count_over_time(ALERTS{{alertstate="firing"}}[{self._span}])')
        return {(row["alertname"], self._whose(row)) for row, _ in rows}

    def resets(self) -> dict[str, float]:
        """How often counters of each verb have gone back: once for each time that its process was started again."""
        found: dict[str, float] = dict.fromkeys(VERBS, 0.0)
        for metric in (m for m in METRICS if m.kind is Kind.COUNTER):
            for row, value in self._asked(f"resets({metric.exposed}[{self._span}])"):
                found[row["verb"]] = max(found.get(row["verb"], 0.0), value)
        return found

    @property
    def _span(self) -> str:
        return f"{int(time.time() - self._began) + 10}s"

    def _whose(self, labels: Mapping[str, str]) -> str:
        if "verb" in labels:
            return labels["verb"]
        if "pipeline" in labels:
            return labels["pipeline"].rpartition("-")[2]
        by_address = {f"127.0.0.1:{port}": verb for verb, port in self._ports.items()}
        return by_address[labels["instance"]]

    def _asked(self, query: str) -> list[tuple[dict[str, str], float]]:
        url = f"http://127.0.0.1:{self._own}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
        with urllib.request.urlopen(url, timeout=30) as answer:
            rows: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        return [(row["metric"], float(row["value"][1])) for row in rows]


def unlike(faults: list[Fault], fired: set[tuple[str, str]], resets: Mapping[str, float]) -> list[str]:
    """What fired without its fault, or did not fire, and counters that went back without a start."""
    expected = {alert for fault in faults for alert in ALERTS[fault.kind, fault.verb]}
    found = [f"{name} of the {verb} did not fire" for name, verb in sorted(expected - fired)]
    found += [f"{name} of the {verb} fired without a fault" for name, verb in sorted(fired - expected)]
    for verb in VERBS:
        starts = sum(fault.verb == verb and fault.kind != "bad record" for fault in faults)
        if resets.get(verb, 0) > starts:
            found.append(
                f"counters of the {verb} went back {resets[verb]:.0f} times, it was started {starts} times"
            )
    return found

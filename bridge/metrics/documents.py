"""Makes what is written of the registry: the table of docs/metrics.md and the dashboard for Grafana.

`python -m bridge.metrics.documents` writes both in a checkout; tests compare them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bridge.metrics.registry import METRICS, Kind, Metric

PAGE, DASHBOARD = Path("docs/metrics.md"), Path("conf/observability/dashboard.json")
_UNITS = {"bytes": "bytes", "bytes/s": "Bps", "ms": "ms", "s": "s"}
"""Grafana's names."""
_WIDTH, _HEIGHT, _COLUMNS = 8, 7, 3
_SOURCE = {"type": "prometheus", "uid": "${source}"}


def rows() -> list[str]:
    """Returns the rows of the table."""
    return [
        f"| `{m.exposed}` | {m.kind.value} | {m.unit} | {', '.join(m.verbs)} | {m.meaning}"
        f"{', by ' + ', '.join(f'`{label}`' for label in m.labels) if m.labels else ''} |"
        for m in METRICS
    ]


def query(metric: Metric) -> str:
    """Returns what a panel shows: what a counter grows by a second, the value of a gauge, the slowest hundredth of a
    histogram."""
    chosen = '{pipeline=~"$pipeline"}'
    by = ", ".join(("pipeline", "verb", *metric.labels))
    if metric.kind is Kind.COUNTER:
        return f"sum by ({by}) (rate({metric.exposed}{chosen}[$__rate_interval]))"
    if metric.kind is Kind.GAUGE:
        return f"max by ({by}) ({metric.exposed}{chosen})"
    buckets = f"sum by (le, {by}) (rate({metric.exposed}_bucket{chosen}[$__rate_interval]))"
    return f"histogram_quantile(0.99, {buckets})"


def dashboard() -> dict[str, Any]:
    """Returns a dashboard with a panel for each metric."""
    return {
        "title": "Changelog bridge",
        "uid": "changelog-bridge",
        "schemaVersion": 39,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [_variable("source", "datasource", "prometheus"), _pipelines()]},
        "panels": [_panel(number, metric) for number, metric in enumerate(METRICS)],
    }


def _variable(name: str, type: str, asked: str) -> dict[str, Any]:
    return {"name": name, "type": type, "query": asked}


def _pipelines() -> dict[str, Any]:
    asked = _variable("pipeline", "query", "label_values(bridge_commits_total, pipeline)")
    return {**asked, "datasource": _SOURCE, "multi": True, "includeAll": True, "allValue": ".*", "refresh": 2}


def _panel(number: int, metric: Metric) -> dict[str, Any]:
    rate = f"{metric.unit}/s" if metric.kind is Kind.COUNTER else metric.unit
    slowest = ", slowest of 100" if metric.kind is Kind.HISTOGRAM else ""
    labels = " ".join(f"{{{{{label}}}}}" for label in ("pipeline", "verb", *metric.labels))
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": f"{metric.name}{slowest}",
        "description": metric.meaning,
        "datasource": _SOURCE,
        "gridPos": {
            "x": number % _COLUMNS * _WIDTH,
            "y": number // _COLUMNS * _HEIGHT,
            "w": _WIDTH,
            "h": _HEIGHT,
        },
        "fieldConfig": {"defaults": {"unit": _UNITS.get(rate, "short"), "min": 0}, "overrides": []},
        "targets": [{"refId": "A", "datasource": _SOURCE, "expr": query(metric), "legendFormat": labels}],
    }


def _write() -> None:
    DASHBOARD.write_text(json.dumps(dashboard(), indent=2) + "\n")
    kept = [line for line in PAGE.read_text().splitlines() if not line.startswith("| `bridge_")]
    at = kept.index("| name | type | unit | verbs | meaning |") + 2
    PAGE.write_text("\n".join([*kept[:at], *rows(), *kept[at:]]) + "\n")


if __name__ == "__main__":
    _write()

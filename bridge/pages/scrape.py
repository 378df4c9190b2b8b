"""Asks the metrics endpoint of a run for the values of one pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

from bridge.metrics.prometheus import check_installed, parsed

__all__ = ["Scraped", "scrape"]

_SECONDS = 2.0
_MOST_BYTES = 8 << 20
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}


@dataclass(frozen=True)
class Scraped:
    """The samples of one endpoint: name, labels and value of each."""

    samples: tuple[tuple[str, Mapping[str, str], float], ...]

    def of(self, pipeline: str, verb: str) -> dict[str, float]:
        """The values of a pipeline's verb that have no other labels, by their names without `bridge_`."""
        return {name: value for name, labels, value in self._of(pipeline, verb) if len(labels) == 3}

    def reader(self, pipeline: str, verb: str) -> str | None:
        """What read most of the batches; None where nothing was read."""
        counts: dict[str, float] = {}
        for name, labels, value in self._of(pipeline, verb):
            if name == "batches_total":
                counts[labels["reader"]] = counts.get(labels["reader"], 0) + value
        return max(counts, key=lambda reader: counts[reader], default=None)

    def _of(self, pipeline: str, verb: str) -> Iterator[tuple[str, Mapping[str, str], float]]:
        for name, labels, value in self.samples:
            if (labels.get("pipeline"), labels.get("verb")) == (pipeline, verb):
                yield name.removeprefix("bridge_"), labels, value


def scrape(target: str) -> Scraped | None:
    """Ask the endpoint of `run.metrics`; None where nothing answers, and where it is no address: files and gateways
    keep the values of runs that have ended.

    Raises DefinitionError where prometheus-client is missing.
    """
    place = parsed(target)
    if isinstance(place, str):
        return None
    check_installed("run.metrics")
    from prometheus_client.parser import text_string_to_metric_families

    host, port = place
    url = f"http://{_EVERYWHERE.get(host, host)}:{port}/metrics"
    try:
        with build_opener(ProxyHandler({})).open(url, timeout=_SECONDS) as answer:
            text = answer.read(_MOST_BYTES).decode()
        families = list(text_string_to_metric_families(text))
    except (URLError, OSError, ValueError):
        return None
    return Scraped(tuple((s.name, s.labels, s.value) for family in families for s in family.samples))

"""What OpenLineage's specification 2-0-2 asks of an event, and of the facets that the library has classes for."""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import attr
import jsonschema
from openlineage.client import generated

from bridge.metrics.openlineage_events import OFFSETS_SCHEMA

_URI = {"type": "string", "pattern": "^[a-z][a-z0-9+.-]*:[!-~]+$"}
_FACET = {
    "type": "object",
    "required": ["_producer", "_schemaURL"],
    "properties": {
        "_producer": _URI,
        "_schemaURL": _URI,
    },
}
_FACETS = {"type": "object", "additionalProperties": _FACET}
_NAMED = {
    "type": "object",
    "required": ["namespace", "name"],
    "properties": {
        "namespace": {"type": "string", "minLength": 1},
        "name": {"type": "string", "minLength": 1},
        "facets": _FACETS,
        "inputFacets": _FACETS,
        "outputFacets": _FACETS,
    },
    "additionalProperties": False,
}
_EVENT = {
    "type": "object",
    "required": ["eventTime", "eventType", "producer", "schemaURL", "run", "job"],
    "properties": {
        "eventType": {"enum": ["START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"]},
        "eventTime": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$"},
        "producer": _URI,
        "schemaURL": {"const": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"},
        "run": {
            "type": "object",
            "required": ["runId"],
            "properties": {
                "runId": {"type": "string", "pattern": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"},
                "facets": _FACETS,
            },
            "additionalProperties": False,
        },
        "job": _NAMED,
        "inputs": {"type": "array", "items": _NAMED},
        "outputs": {"type": "array", "items": _NAMED},
    },
    "additionalProperties": False,
}
_OFFSETS_FACET = {
    "type": "object",
    "required": ["_producer", "_schemaURL", "partitions"],
    "properties": {
        "partitions": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["partition", "to"],
                "properties": {
                    name: {"type": "integer", "minimum": 0} for name in ("partition", "from", "to")
                },
                "additionalProperties": False,
            },
        }
    },
}


def checked(event: dict[str, Any]) -> dict[str, Any]:
    """Return the event. Raises for one that is not legal."""
    jsonschema.validate(event, _EVENT)
    classes = _classes()
    for place in (event["run"], event["job"], *event["inputs"], *event["outputs"]):
        for facet in (
            f for part in ("facets", "inputFacets", "outputFacets") for f in place.get(part, {}).values()
        ):
            if facet["_schemaURL"] == OFFSETS_SCHEMA:
                jsonschema.validate(facet, _OFFSETS_FACET)
                continue
            known = classes[facet["_schemaURL"]]
            fields = {f.name: f.default is attr.NOTHING for f in attr.fields(known)}
            assert not set(facet) - set(fields), (facet, "has fields that the specification does not have")
            missing = {name for name, is_required in fields.items() if is_required} - set(facet)
            assert not missing, (facet, missing)
    return event


def events_in(file: Path) -> list[dict[str, Any]]:
    """Return the events of a file, each checked."""
    return [checked(json.loads(line)) for line in file.read_text().splitlines()]


def edges(events: Iterable[dict[str, Any]]) -> set[tuple[str, str]]:
    """Return the graph: from datasets to jobs and from jobs to datasets, by their names without namespaces."""
    return {
        edge
        for event in events
        for edge in (
            *((dataset["name"], event["job"]["name"]) for dataset in event["inputs"]),
            *((event["job"]["name"], dataset["name"]) for dataset in event["outputs"]),
        )
    }


def facet_of(event: dict[str, Any], side: str, number: int, name: str) -> Any:
    """Return a facet of the dataset of this number in `inputs` or `outputs`, of any kind."""
    dataset = event[side][number]
    return {**dataset["facets"], **dataset.get(f"{side[:-1]}Facets", {})}[name]


def _classes() -> dict[str, type]:
    """The classes of facets, which the library generates from the published schemas, by the URLs of these."""
    return {
        made._get_schema(): made for made in _generated() if attr.has(made) and hasattr(made, "_get_schema")
    }


def _generated() -> Iterator[Any]:
    for module in pkgutil.iter_modules(generated.__path__):
        yield from (
            v
            for v in vars(import_module(f"{generated.__name__}.{module.name}")).values()
            if isinstance(v, type)
        )

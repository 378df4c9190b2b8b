"""Loads a job: validates its file, finds its tables, and translates it into publishes and a script."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import yaml
from pydantic import ValidationError

from bridge.cdc_jobs.job import Job, JobTable
from bridge.cdc_jobs.job_settings import job_settings, refuse_transforms
from bridge.cdc_jobs.model import JobFile
from bridge.cdc_jobs.options import check_options, check_type
from bridge.cdc_jobs.publishes import JobPublishes
from bridge.cdc_jobs.references import References
from bridge.cdc_jobs.routes import route_tables
from bridge.cdc_jobs.sinks import JobSinks
from bridge.cdc_jobs.source_statements import read_statements
from bridge.cdc_jobs.source_tables import SourceTable, delta_tables, kafka_tables, publish_start
from bridge.cdc_jobs.transforms import transformed_tables
from bridge.cdc_jobs.translation import translated_script
from bridge.config.substitute import Secrets, databricks_secret
from bridge.config.yaml_errors import explain_invalid
from bridge.config.yaml_tree import Document, Place, read
from bridge.definition import PublishStart, Run
from bridge.options.kinds import duration_ms
from bridge.user_files import folder_of, location_of, read_text


def is_job(file: str) -> bool:
    """Whether a file is a job of Flink CDC, and neither a pipeline file nor a script: YAML with `source` or `sink`.

    A file that cannot be read is none; of one that is no valid YAML the beginnings of its lines tell.
    """
    if PurePosixPath(file).suffix.lower() == ".sql":
        return False
    try:
        text = read_text(location_of(file))
        root = yaml.compose(text, yaml.SafeLoader)
    except (OSError, UnicodeDecodeError):
        return False
    except yaml.YAMLError:
        return re.search(r"^(source|sink) *:", text, re.MULTILINE) is not None
    keys = {key.value for key, _ in root.value} if isinstance(root, yaml.MappingNode) else set()
    return bool(keys & {"source", "sink"}) and not keys & {"topic", "delta", "version"}


def load_job(
    path: str | Path, *, environ: Mapping[str, str] | None = None, secrets: Secrets = databricks_secret
) -> Job:
    """Loads a job and checks all of it. Of a source of type `delta` it reads the logs of the tables, for their columns;
    it connects neither to Kafka nor to Spark.

    `environ` (os.environ by default) and `secrets` resolve references. Raises DefinitionError with file, line and YAML
    path; DdlError with line and column for projections, filters and CREATE TABLEs; OptionError for options;
    UnsupportedError for what this version cannot do; TableError for a Delta table that cannot be read. No message
    contains a secret.
    """
    path = location_of(path)
    document = read(path)
    base = folder_of(path)
    references = References(base, os.environ if environ is None else environ, secrets)
    types = check_type(document, "source"), check_type(document, "sink")
    file = _validated(document, references)
    settings = job_settings(document, file.pipeline, PurePosixPath(path).stem)
    refuse_transforms(document, file)
    warnings = [
        *check_options(document, "source", file.source),
        *check_options(document, "sink", file.sink),
        *settings.warnings,
    ]
    tables = {table.id: table for table in _tables(document, file, types[0], base)}
    routed, unused_routes = route_tables(document, file.route, tuple(tables))
    transformed, unused_rules = transformed_tables(document, file.transform, list(tables.values()))
    sinks = JobSinks(document, file.sink, settings.name, settings.parallelism)
    topics = sinks.topics(routed)
    timeout = settings.step_timeout
    seconds = Run.step_timeout_seconds if timeout is None else duration_ms(timeout) / 1000
    publishes = JobPublishes(document, references, sinks, settings.name, settings.state, base, seconds)
    start = publish_start(document, file.source) if types[0] == "delta" else PublishStart()
    targets = [(transformed[route.table], route, topics[route.sink]) for route in routed]
    definitions = tuple(publishes.definition(*target, start) for target in targets if target[0].is_direct)
    through_script = [target for target in targets if not target[0].is_direct]
    script = None
    if through_script:
        script = translated_script(document, references, file.source, sinks, settings, through_script, start)
    warnings += [*unused_routes, *unused_rules, *(text for one in definitions for text in one.warnings)]
    warnings += script.warnings if script is not None else ()
    return Job(
        name=settings.name,
        file=path,
        folder=publishes.folder,
        source_type=types[0],
        sink_type=types[1],
        tables=tuple(
            JobTable(one.table.title, ".".join(route.sink), topic, one.key, one.table.place, one.is_direct)
            for one, route, topic in targets
        ),
        publishes=definitions,
        script=script,
        monitoring=settings.monitoring.relative_to(base),
        warnings=tuple(dict.fromkeys(warnings)),
    )


def _validated(document: Document, references: References) -> JobFile:
    """Validates the file with its references. Those of clients' options stay references, since they may be secrets;
    those of options without effect are not looked up."""

    def change(place: Place, text: str) -> Any:
        where = document.where(place)
        key = str(place[-1])
        if place[0] in ("source", "sink") and key.startswith("aliyun.kafka."):
            return text
        if place[:2] == ("source", "ddl"):
            return text
        if place[0] in ("source", "sink") and key.startswith("properties."):
            return references.translated(text, where)
        if place[0] == "transform" and key in ("projection", "filter"):
            return references.translated(text, where)
        return references.shown(text, where)

    try:
        return JobFile.model_validate(document.mapped(change))
    except ValidationError as error:
        raise explain_invalid(document, error, JobFile) from None


def _tables(document: Document, file: JobFile, type: str, base: str) -> list[SourceTable]:
    if type == "delta":
        return delta_tables(document, file.source, base)
    return kafka_tables(document, file.source, read_statements(document, file.source, base))

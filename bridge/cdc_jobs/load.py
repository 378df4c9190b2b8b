"""Loads a job: validates its file, finds its tables, and translates it into publishes and a script.

The options of `source` and `sink` have the keys of Flink CDC's connectors (kafka, and upsert-kafka of Realtime
Compute); `delta` takes the place of a database. What is not listed here and belongs to Kafka's connector is an option
of WITH, which `config` checks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path, PurePosixPath
from typing import Any

import yaml
from pydantic import ValidationError

from bridge.cdc_jobs.job import Job, JobTable
from bridge.cdc_jobs.job_settings import job_settings, refuse_transforms
from bridge.cdc_jobs.model import JobFile
from bridge.cdc_jobs.publishes import JobPublishes
from bridge.cdc_jobs.references import References
from bridge.cdc_jobs.routes import route_tables
from bridge.cdc_jobs.script_text import read_statements
from bridge.cdc_jobs.sinks import JobSinks
from bridge.cdc_jobs.source_tables import SourceTable, delta_tables, kafka_tables, publish_start
from bridge.cdc_jobs.transforms import transformed_tables
from bridge.cdc_jobs.translation import translated_script
from bridge.config.substitute import Secrets, databricks_secret, environment
from bridge.config.yaml_errors import explain_invalid
from bridge.config.yaml_tree import Document, Place, read
from bridge.definition import PublishStart, Run
from bridge.errors import DefinitionError, OptionError, UnsupportedError
from bridge.options.kinds import BOOLEAN, STRING, Kind, duration_ms
from bridge.options.model import Option, Support
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

    `environ` (by default `environment()`) and `secrets` resolve references. Raises DefinitionError with file, line and
    YAML path; DdlError with line and column for projections, filters and CREATE TABLEs; OptionError for options;
    UnsupportedError for what this version cannot do; TableError for a Delta table that cannot be read. No message
    contains a secret.
    """
    path = location_of(path)
    document = read(path)
    base = folder_of(path)
    references = References(base, environment() if environ is None else environ, secrets)
    types = _check_type(document, "source"), _check_type(document, "sink")
    file = _validated(document, references)
    settings = job_settings(document, file.pipeline, PurePosixPath(path).stem)
    refuse_transforms(document, file)
    warnings = [
        *_check_options(document, "source", file.source),
        *_check_options(document, "sink", file.sink),
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


def _honoured(key: str, description: str, kind: Kind[Any] = STRING, *, required: bool = False) -> Option[Any]:
    return Option(key, kind, description, required=required)


def _without_effect(key: str, description: str, reason: str) -> Option[Any]:
    return Option(key, STRING, description, support=Support.IGNORED, reason=reason)


def _refused(key: str, description: str, reason: str) -> Option[Any]:
    return Option(key, STRING, description, support=Support.REFUSED, reason=reason)


_COMMON = (
    _honoured("type", "The connector.", required=True),
    _honoured("name", "A name for people."),
)
_CLIENT = (
    _honoured("properties.bootstrap.servers", "Addresses of brokers.", required=True),
    _honoured("properties.*", "A setting of Kafka's clients."),
)
_SINK = (
    *_COMMON,
    *_CLIENT,
    _honoured("sink.delivery-guarantee", "none, at-least-once or exactly-once."),
    _honoured("sink.add-tableId-to-header-enabled", "Headers with the table's id.", BOOLEAN),
    _refused(
        "include.schema.changes", "Kinds of schema changes.", "see pipeline: {schema.change.behavior: ...}"
    ),
    _refused(
        "exclude.schema.changes", "Kinds of schema changes.", "see pipeline: {schema.change.behavior: ...}"
    ),
)
_ALIYUN = _without_effect(
    "aliyun.kafka.*",
    "Access to the API of ApsaraMQ for Kafka, which creates topics.",
    "a missing topic is created by Kafka's own client, with properties.*; if the instance does not allow it, create "
    "the topics in its console first",
)

_SINKS: Mapping[str, tuple[Option[Any], ...]] = {
    "upsert-kafka": (*_SINK, _ALIYUN),
    "kafka": (
        *_SINK,
        _ALIYUN,
        _honoured("value.format", "debezium-json, canal-json, or json for tables without a key."),
        _honoured("key.format", "json or csv."),
        _honoured("topic", "The topic, for a job of one table."),
        _honoured("partition.strategy", "all-to-zero or hash-by-key."),
        _honoured("sink.custom-header", "Headers of every record: key1:value1,key2:value2."),
        _honoured("sink.tableId-to-topic.mapping", "Topics of tables: shop.orders:topic1;shop.items:topic2."),
        _refused(
            "sink.debezium-json.include-schema.enabled",
            "Whether documents have a schema.",
            "as in Flink's debezium-json; leave it out, or set it to false",
        ),
    ),
}
_SOURCES: Mapping[str, tuple[Option[Any], ...]] = {
    "delta": (
        *_COMMON,
        _honoured("path", "Folder of the tables, or of one table.", required=True),
        _honoured("tables", "Ids of tables, which may be regular expressions."),
        _honoured(
            "primary-keys", "Columns that identify a row: id, or shop.orders:id;shop.items:order_id,line."
        ),
        _honoured("scan.startup.mode", "initial or latest-offset."),
    ),
    "kafka": (
        *_COMMON,
        *_CLIENT,
        _honoured("topic", "The topic of the table, or a list separated by ';'.", required=True),
        _honoured("value.format", "The format of the documents.", required=True),
        _honoured("ddl", "CREATE TABLE of each table, without WITH."),
        _honoured("ddl_file", "A file that has them."),
        _honoured("scan.*", "Where reading begins and ends."),
        _refused(
            "topic-pattern", "Topics by their names.", "a table has one topic; list the topics in `topic`"
        ),
        _refused(
            "schema.inference.strategy",
            "How columns are found.",
            "columns are never guessed from documents; declare them as CREATE TABLE in ddl or ddl_file",
        ),
        _refused(
            "scan.max.pre.fetch.records",
            "How many documents are read to find columns.",
            "columns are never guessed from documents; remove it",
        ),
    ),
}
_DATABASES = (
    "mysql postgres oracle sqlserver db2 mongodb oceanbase tidb vitess mongodb polardbx sls hologres".split()
)
_WAY = (
    "let Debezium write the database's changes to Kafka in debezium-json (one topic per table), and read these with "
    "`type: kafka`, `value.format: debezium-json` and the columns in `ddl`"
)


def _check_type(document: Document, section: str) -> str:
    """Returns the `type` of a section. Raises DefinitionError for one that is missing or unknown, and UnsupportedError,
    with the way that there is, for other connectors of Flink CDC."""
    legal = _SOURCES if section == "source" else _SINKS
    shown = ", ".join(legal)
    if not isinstance(document.values.get(section), dict):
        raise DefinitionError(
            f"{document.where((section,))} is missing; it is required, with a type: {shown}"
        )
    name = document.values[section].get("type")
    where = document.where((section, "type"))
    if name is None:
        raise DefinitionError(f"{where} is missing; it is required; legal values are {shown}")
    if name in legal:
        return str(name)
    if section == "source" and name in _DATABASES:
        raise UnsupportedError(
            f"{where}: '{name}': the bridge does not read databases itself; {_WAY}. A Delta table is read with "
            "`type: delta`",
            f"source type {name}",
        )
    near = get_close_matches(str(name), legal, 1, 0.7)
    if near:
        raise DefinitionError(f"{where}: '{name}': did you mean '{near[0]}'?")
    if section == "source":
        way = f"{_WAY}. Legal values are {shown}"
    else:
        way = (
            f"legal values are {shown}. A Delta table is written by an ingest (docs/ingest.md), or by a script with "
            "'connector' = 'delta' (docs/sql.md)"
        )
    raise UnsupportedError(f"{where}: '{name}': the bridge has no such {section}; {way}", f"{section} {name}")


def _check_options(document: Document, section: str, values: Mapping[str, str]) -> Iterator[str]:
    """Checks the options of a section and yields warnings for those without effect.

    Raises DefinitionError with the position for an option that is unknown, missing or empty, and for a refused one
    unless it is set to `false`. Values that belong into WITH are checked where they are used.
    """
    type = values["type"]
    options = (_SOURCES if section == "source" else _SINKS)[type]
    ignored: dict[str, list[str]] = {}
    for key, value in values.items():
        where = document.where((section, key))
        option = _option(options, key, values)
        if option is None:
            raise DefinitionError(f"{where} is not an option of {section} '{type}'; {_nearest(options, key)}")
        if not isinstance(value, str) or not value.strip():
            raise DefinitionError(f"{where} has no value that is text; set one, or remove the key")
        if option.support is Support.REFUSED and value.lower() != "false":
            raise UnsupportedError(f"{where} is refused: {option.reason}", f"{section} option {key}")
        if option.support is Support.IGNORED:
            ignored.setdefault(option.key, []).append(key)
        elif option.kind is BOOLEAN and "${" not in value:
            try:
                option.parse(value)
            except OptionError as error:
                raise OptionError(f"{where}: {error}") from None
    for option in options:
        if option.required and option.key not in values:
            raise DefinitionError(
                f"{document.where((section, option.key))} is missing; {section} '{type}' requires it"
            )
    for key, keys in ignored.items():
        option = next(o for o in options if o.key == key)
        yield f"{section}: {', '.join(sorted(keys))} without effect: {option.reason}"


def _option(options: tuple[Option[Any], ...], key: str, values: Mapping[str, str]) -> Option[Any] | None:
    """Returns the option that declares a key; a format's own options (`debezium-json.…`) belong to its name."""
    for option in options:
        if option.key == key or (option.key.endswith(".*") and key.startswith(option.key[:-1])):
            return option
    format = values.get("value.format", "debezium-json")
    if values["type"] == "kafka" and key.removeprefix("value.").startswith(f"{format}."):
        return _honoured(key, "An option of the format.")
    return None


def _nearest(options: tuple[Option[Any], ...], key: str) -> str:
    legal = [option.key for option in options]
    near = get_close_matches(key.lower(), legal, 1, 0.7)
    return f"did you mean '{near[0]}'?" if near else f"its options are {', '.join(legal)}"

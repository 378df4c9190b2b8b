"""Loads a pipeline file into a Definition, and resolves `delta.merge-columns` to columns of the DDL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from pydantic import ValidationError

from bridge.bridge_folders import QUARANTINE_SUFFIX, RESULTS_SUFFIX
from bridge.config import unsupported
from bridge.config.change_semantics import (
    append_history_of,
    column_rules,
    delete_condition,
    deletion_column,
    history_of,
    ignored_nulls,
    naming_column,
    refuse_ignored_name,
    refuse_unfit_first_row,
    refuse_unfit_rules,
    refuse_unfit_truncates,
    sequence_columns,
    sequence_metadata,
    with_all_changes,
)
from bridge.config.ddl_text import read_ddl
from bridge.config.definition_warnings import warnings
from bridge.config.documents import refuse_unfit_documents
from bridge.config.model import (
    CreateSection,
    DeltaSection,
    MaintenanceSection,
    MergeSection,
    PeekSection,
    PipelineFile,
    QuarantineSection,
)
from bridge.config.paths import resolved_path
from bridge.config.publish_rules import check_current_rows, check_publication
from bridge.config.quality_section import QualitySection, ResultsSection
from bridge.config.script_state import side_table
from bridge.config.storage_locations import Kind, Overlap, StorageLocation, refuse_overlaps, storage_locations
from bridge.config.substitute import Secrets, Substitution, databricks_secret, environment
from bridge.config.topic import resolve_topic, table_id_headers
from bridge.config.yaml_errors import explain_invalid, located
from bridge.config.yaml_tree import Document, Place, read
from bridge.ddl import Ddl
from bridge.definition import (
    BadRecords,
    Definition,
    DeltaTarget,
    Encoder,
    Engine,
    Gate,
    GateAction,
    Maintenance,
    MergeSettings,
    OnFailure,
    Publish,
    PublishStart,
    Quality,
    Reader,
    Run,
    Topic,
    TopicCreation,
    Truncate,
)
from bridge.errors import DefinitionError, OptionError, UnsupportedError
from bridge.metrics.monitoring import Monitoring
from bridge.options.kinds import duration_ms, size_bytes
from bridge.secret import Secret
from bridge.user_files import folder_of, location_of, read_text, resolved

_KEY = "delta.merge-columns"


def own_columns(given: str | Sequence[str] | None, topic: Topic) -> tuple[str, ...]:
    """Returns the columns of the DDL outside the PRIMARY KEY, in its order; none where the key is not set.

    Raises DefinitionError without a PRIMARY KEY, for a DDL of key columns only, and for a list of other columns than
    these: a column that is read and not written would be lost without a word.
    """
    if given is None:
        return ()
    key = topic.schema.primary_key
    own = tuple(name for name in topic.schema.names if name not in key)
    if not key:
        raise DefinitionError(
            f"{_KEY}: the DDL has no PRIMARY KEY, by which the rows of several topics become one; declare one, or "
            f"remove {_KEY}"
        )
    if not own:
        raise DefinitionError(
            f"{_KEY}: the DDL has no column outside the PRIMARY KEY, so there is nothing to merge; declare one, for "
            "example `changed_at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL`"
        )
    if isinstance(given, str):
        return own
    for name in given:
        if name in key:
            raise DefinitionError(
                f"{_KEY}: {name!r} is in the PRIMARY KEY, which all pipelines of the table share; leave it out"
            )
        if name not in own:
            raise DefinitionError(
                f"{_KEY}: {name!r} is not a column of the DDL; its columns outside the PRIMARY KEY are {', '.join(own)}"
            )
    if missing := [name for name in own if name not in given]:
        raise DefinitionError(
            f"{_KEY}: {missing[0]!r} is a column of the DDL, but not in the list, so it would not be written; add it, "
            "remove it from the DDL, or set `merge-columns: all`"
        )
    return own


_DDL: Place = ("topic", "ddl")


def load(
    path: str | Path, *, environ: Mapping[str, str] | None = None, secrets: Secrets = databricks_secret
) -> Definition:
    """Loads a pipeline file and checks all of it; connects neither to Kafka nor to the table.

    `path` may be the URI of a file on an object store, as those of its DDL and gate suite may; paths in it are then
    relative to its folder on the store.

    `environ` (by default `environment()`) and `secrets` resolve `${env:...}` and `${secret:...}`. Raises
    DefinitionError with file, line and YAML path; DdlError with the position in the file that contains the DDL;
    OptionError for options in WITH; UnsupportedError for what this version cannot run. No message contains a secret.
    """
    file_location = location_of(path)
    document = read(file_location)
    base = folder_of(file_location)
    substitution = Substitution(environment() if environ is None else environ, base, secrets)
    file = _validated(document, substitution)
    ddl = _substituted(document, read_ddl(document, file.topic, base), substitution)
    try:
        topic = resolve_topic(ddl, base_is_existing=file.ingest.base == "existing")
        topic = replace(
            topic,
            create=_topic_creation(file.topic.create, topic),
            sink=replace(topic.sink, headers=table_id_headers(file.delta.table, topic)),
        )
        definition = _definition(file, topic, base)
        unsupported.refuse_definition(definition)
        check_publication(definition.publish, definition.topic)
        check_current_rows(definition)
    except (OptionError, UnsupportedError) as error:
        raise located(document, ("topic",), error) from error
    _refuse_unfit(document, definition.topic)
    _refuse_overlaps(document, definition, file.topic.ddl_file)
    return definition


def _refuse_unfit(document: Document, topic: Topic) -> None:
    try:
        refuse_unfit_documents(topic)
    except DefinitionError as error:
        raise located(document, ("topic",), error) from error


def _refuse_overlaps(document: Document, definition: Definition, ddl_file: str | None) -> None:
    files = [StorageLocation((), Kind.READ, resolved(definition.base, PurePosixPath(document.file).name))]
    if ddl_file is not None:
        files.append(
            StorageLocation(("topic", "ddl_file"), Kind.READ, resolved_path(definition.base, ddl_file))
        )
    try:
        refuse_overlaps([*files, *storage_locations(definition)])
    except Overlap as error:
        raise DefinitionError(f"{document.where(error.key)}: {error}") from error


def _validated(document: Document, substitution: Substitution) -> PipelineFile:
    def change(place: Place, text: str) -> str:
        if place == _DDL:
            return text
        if "${secret:" in text.replace("$${", ""):
            raise DefinitionError(
                f"{document.where(place)}: ${{secret:...}} is allowed in WITH only, because logs and reports show this "
                "value. Use ${env:...} or ${file:...}"
            )
        value = substitution(text, document.where(place))
        return value.reveal() if isinstance(value, Secret) else value

    try:
        return PipelineFile.model_validate(document.mapped(change))
    except ValidationError as error:
        raise explain_invalid(document, error) from None


def _substituted(document: Document, ddl: Ddl, substitution: Substitution) -> Ddl:
    """Substitutes references after the DDL is parsed, so that errors about the DDL cannot show their values."""
    where = document.where(("topic",))
    return replace(ddl, options={k: substitution(v, f"{where}: '{k}'") for k, v in ddl.options.items()})


def _definition(file: PipelineFile, topic: Topic, base: str) -> Definition:
    mode, _, value = file.publish.start.partition(":")
    trigger = file.run.trigger
    delta = _delta(file.delta, topic, base, file.name)
    quality = _quality(file.quality, file.delta, base) if file.quality else None
    if delta.aggregate and quality is not None and quality.gate is not None:
        raise DefinitionError(
            "quality.gate cannot be combined with delta.aggregate: a gate judges the rows of a batch before they are "
            "combined with those of the table; set gate: off, and check the table"
        )
    return Definition(
        name=file.name,
        base=base,
        topic=with_all_changes(topic, delta.append_history),
        delta=delta,
        run=Run(
            "" if file.run.checkpoint is None else resolved_path(base, file.run.checkpoint),
            None if trigger == "available-now" else duration_ms(trigger) / 1000,
            file.run.max_offsets_per_batch,
            duration_ms(file.run.step_timeout) / 1000,
            Monitoring.of(
                file.run.metrics, file.run.events, file.run.alert, file.run.otlp, file.run.lineage
            ).relative_to(base),
            _state(file.run.state, base),
        ),
        bad_records=BadRecords(file.ingest.bad_records),
        quarantine=_quarantine(file, base),
        base_is_existing=file.ingest.base == "existing",
        reader=Reader(file.ingest.reader),
        merge=_merge(file.merge),
        publish=Publish(
            PublishStart(mode, value or None),
            snapshot_chunk_rows=file.publish.snapshot_chunk_rows,
            net_changes=file.publish.net_changes,
            pair=file.publish.update_messages == "pair",
            current_rows=file.publish.history == "current",
            carry=file.publish.added_columns == "carry",
            encoder=Encoder(file.publish.encoder),
            transaction_rows=file.publish.transaction_rows,
        ),
        quality=quality,
        maintenance=_maintenance(file.maintenance) if file.maintenance else None,
        peek_hides=_hidden_fields(file.peek, topic),
        warnings=tuple(warnings(topic)),
    )


def _state(text: str | None, base: str) -> DeltaTarget | None:
    if text is None:
        return None
    return DeltaTarget(resolved_path(base, text)) if "/" in text else DeltaTarget(table=text)


def _topic_creation(section: CreateSection | None, topic: Topic) -> TopicCreation | None:
    if section is None:
        return None
    if topic.pattern is not None:
        raise OptionError(
            "topic.create cannot be combined with 'topic-pattern', which matches existing topics; name the topics with "
            "'topic', or remove topic.create"
        )
    compacted = {"cleanup.policy": "compact"} if topic.is_upsert else {}
    return TopicCreation(section.partitions, section.replication, {**compacted, **section.config})


def _delta(section: DeltaSection, topic: Topic, base: str, pipeline: str) -> DeltaTarget:
    path = None if section.path is None else resolved_path(base, section.path)
    for name in section.cluster_by:
        if name not in topic.schema.names:
            raise DefinitionError(
                f"delta.cluster-by: {name!r} is not a column of the DDL; its columns are "
                f"{', '.join(topic.schema.names)}"
            )
    sequence = sequence_columns(section.sequence_by, topic)
    truncates = delete_condition(section.apply_as_truncate, topic, "delta.apply-as-truncate")
    found = DeltaTarget(
        path,
        section.table,
        section.properties,
        section.merge_schema,
        tuple(section.cluster_by),
        own_columns(section.merge_columns, topic),
        sequence,
        duration_ms(section.delete_memory) / 1000,
        delete_condition(section.apply_as_delete, topic),
        ignored_nulls(section.ignore_null_updates, topic),
        sequence_metadata(sequence, topic),
        history_of(section.history, section.history_columns, topic, sequence)
        if section.history in ("scd2", "bitemporal")
        else None,
        deletion_column(section.soft_delete, topic),
        Truncate(section.truncate),
        truncates,
        section.first_row,
        section.ignore_delete,
        naming_column(section.update_columns, topic),
        ignores_all_nulls=section.ignore_null_updates is True,
        append_history=append_history_of(section.history_columns, topic)
        if section.history == "append"
        else None,
        aggregate=column_rules(section.aggregate, topic),
        owner=pipeline if section.merge_columns else "",
    )
    refuse_unfit_truncates(found, topic, "delta.{}")
    refuse_unfit_first_row(found, topic, "delta.{}")
    refuse_ignored_name(found, "delta.{}")
    refuse_unfit_rules(found, "delta.{}")
    return found


def _quarantine(file: PipelineFile, base: str) -> DeltaTarget | None:
    section, delta = file.ingest.quarantine, file.delta
    diverts = file.quality is not None and file.quality.gate == "quarantine"
    if file.ingest.bad_records != "quarantine" and not diverts:
        if section is not None:
            raise DefinitionError(
                f"ingest.quarantine has no effect with bad-records: {file.ingest.bad_records}; set bad-records: "
                "quarantine, or remove it"
            )
        return None
    return _side_table(section, delta, base, QUARANTINE_SUFFIX)


def _side_table(
    section: QuarantineSection | ResultsSection | None, delta: DeltaSection, base: str, suffix: str
) -> DeltaTarget:
    """Returns the table that `section` names, else the table of the pipeline with `suffix` appended to its name."""
    if section is not None:
        return DeltaTarget(section.path and resolved_path(base, section.path), section.table)
    return side_table(DeltaTarget(delta.path and resolved_path(base, delta.path), delta.table), suffix)


def _merge(section: MergeSection) -> MergeSettings:
    return MergeSettings(
        Engine(section.engine), size_bytes(section.max_batch), size_bytes(section.max_touched)
    )


def _hidden_fields(section: PeekSection, topic: Topic) -> tuple[str, ...]:
    """Returns the fields of `peek.hide`, which names columns of the DDL or fields of the key document."""
    if section.hide == "all":
        return ("*",)
    specs = [spec for spec in (topic.key, topic.value) if spec is not None]
    known = {name for spec in specs for name in (*spec.row.names, *spec.columns)}
    for name in section.hide:
        if name not in known:
            raise DefinitionError(
                f"peek.hide: {name!r} is not a field of the key or the value; the fields are "
                f"{', '.join(sorted(known))}. Use one of them, or hide: all"
            )
    # `bridge peek` shows a column with `key.fields-prefix` under its name in the key document.
    return tuple(
        dict.fromkeys(
            shown
            for name in section.hide
            for spec in specs
            for shown in (name, *(f for f, c in zip(spec.row.names, spec.columns, strict=True) if c == name))
        )
    )


def _maintenance(section: MaintenanceSection) -> Maintenance:
    retain = None if section.retain is None else duration_ms(section.retain) / 1000
    return Maintenance(duration_ms(section.every) / 1000, section.optimize, section.vacuum, retain)


def _quality(section: QualitySection, delta: DeltaSection, base: str) -> Quality:
    report = None if section.report is None else resolved_path(base, section.report)
    results = _side_table(section.results, delta, base, RESULTS_SUFFIX)
    suite = resolved_path(base, section.suite)
    return Quality(suite, results, OnFailure(section.on_failure), report, _gate(section, suite, base))


def _gate(section: QualitySection, suite: str, base: str) -> Gate | None:
    if section.gate == "off":
        return None
    is_dedicated = section.gate_suite is not None
    file = resolved_path(base, section.gate_suite) if section.gate_suite else suite
    try:
        text = read_text(location_of(file))
    except OSError as error:
        raise DefinitionError(
            f"{file}: the suite of quality.gate cannot be read: {error.strerror}; with quality.gate: off, "
            "`bridge check FILE --init` generates a suite"
        ) from error
    except UnicodeDecodeError as error:
        raise DefinitionError(f"{file}: the suite of quality.gate is not UTF-8 text") from error
    return Gate(GateAction(section.gate), file, text, is_dedicated)

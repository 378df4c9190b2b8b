"""A pipeline file is loaded into a Definition.

`topic.create` of the pipeline file.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from bridge import config
from bridge.definition import (
    BadRecords,
    DeltaTarget,
    Maintenance,
    OnFailure,
    PublishStart,
    Quality,
    Run,
    TopicCreation,
)
from bridge.errors import DefinitionError, OptionError, UnsupportedError
from bridge.secret import Secret
from tests.config.files import DDL, HEAD, REST, WHOLE, loaded


def test_the_smallest_file(tmp_path: Path) -> None:
    definition = loaded(tmp_path, WHOLE)
    assert definition.name == "orders"
    assert definition.base == str(tmp_path)
    assert definition.delta == DeltaTarget(path=str(tmp_path / "lake" / "orders"))
    assert definition.run == Run(str(tmp_path / "work" / "orders"))
    assert definition.bad_records is BadRecords.FAIL
    assert not definition.base_is_existing
    assert definition.publish.start == PublishStart("snapshot")
    assert definition.quality is None
    assert definition.warnings == ()
    assert definition.topic.bootstrap_servers == "localhost:9092"
    assert definition.primary_key == ("id",)


@pytest.mark.parametrize(
    ("state", "target"),
    [
        ("main.ops.bridge_state", DeltaTarget(table="main.ops.bridge_state")),
        ("lake/state", DeltaTarget(path="{base}/lake/state")),
        ("s3a://bucket/state", DeltaTarget(path="s3a://bucket/state")),
    ],
)
def test_the_state_is_a_table_by_its_name_or_path(tmp_path: Path, state: str, target: DeltaTarget) -> None:
    run = loaded(tmp_path, WHOLE.replace("checkpoint: work/orders", f'state: "{state}"')).run
    path = None if target.path is None else target.path.format(base=tmp_path)
    assert (run.checkpoint, run.state_key) == ("", "run.state")
    assert run.state == DeltaTarget(path=path, table=target.table)
    with pytest.raises(DefinitionError, match=r"run\.state, .*/orders/state is inside delta, .*/lake/orders"):
        loaded(tmp_path, WHOLE.replace("checkpoint: work/orders", "state: lake/orders/state"))


def test_every_section(tmp_path: Path) -> None:
    more = """\
delta: {table: main.shop.orders, properties: {delta.appendOnly: false, delta.checkpointInterval: 20}}
run: {checkpoint: "s3://bucket/orders", trigger: 10 s, max-offsets-per-batch: "${env:BATCH:500}", step-timeout: 1 h}
ingest: {bad-records: skip, base: existing}
publish: {start: version:12}
quality: {suite: expectations/orders.json, on-failure: warn, report: /tmp/report.html}
"""
    definition = loaded(tmp_path, WHOLE.replace(REST, more))
    properties = {"delta.appendOnly": "false", "delta.checkpointInterval": "20"}
    assert definition.delta == DeltaTarget(table="main.shop.orders", properties=properties)
    assert definition.run == Run("s3://bucket/orders", 10.0, 500, 3600.0)
    assert definition.bad_records is BadRecords.SKIP
    assert definition.base_is_existing
    assert definition.publish.start == PublishStart("version", "12")
    suite = str(tmp_path / "expectations" / "orders.json")
    results = DeltaTarget(table="main.shop.orders_quality")
    assert definition.quality == Quality(suite, results, OnFailure.WARN, "/tmp/report.html")


def test_the_table_is_clustered_by_columns_of_the_ddl(tmp_path: Path) -> None:
    definition = loaded(tmp_path, WHOLE.replace("delta: {", "delta: {cluster-by: [id], "))
    assert definition.delta.cluster_by == ("id",)
    with pytest.raises(
        DefinitionError, match=r"delta.cluster-by: 'none' is not a column of the DDL; its columns are id"
    ):
        loaded(tmp_path, WHOLE.replace("delta: {", "delta: {cluster-by: [id, none], "))
    for wrong in ("[]", "[id, ID]", "[a, b, c, d, e]"):
        with pytest.raises(
            DefinitionError, match=r"cluster-by.*: not legal; legal values are 1 to 4 different columns"
        ):
            loaded(tmp_path, WHOLE.replace("delta: {", f"delta: {{cluster-by: {wrong}, "))


@pytest.mark.parametrize("key", ["ddl_file", "ddl-file"])
def test_the_ddl_in_a_file_of_its_own(tmp_path: Path, key: str) -> None:
    (tmp_path / "orders.sql").write_text(DDL, encoding="utf-8")
    definition = loaded(tmp_path, f"{HEAD}topic: {{{key}: orders.sql}}\n{REST}", {"KAFKA": "broker:1"})
    assert definition.topic.bootstrap_servers == "broker:1"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("dbfs:/lake/orders", "dbfs:/lake/orders"),
        ("abfss://c@a.dfs/orders", "abfss://c@a.dfs/orders"),
        ("file:/lake", "file:/lake"),
        ("/lake/orders", "/lake/orders"),
        ("./a/../orders", "{base}/orders"),
    ],
)
def test_paths(tmp_path: Path, path: str, expected: str) -> None:
    definition = loaded(tmp_path, WHOLE.replace("path: lake/orders", f'path: "{path}"'))
    assert definition.delta.path == expected.format(base=tmp_path)


def test_paths_are_relative_to_where_a_link_is(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    loaded(tmp_path / "real", WHOLE)
    link = tmp_path / "orders.yaml"
    link.symlink_to(tmp_path / "real" / "orders.yaml")
    assert config.load(link, environ={}).base == str(tmp_path)


def test_a_start_position_with_a_base(tmp_path: Path) -> None:
    text = WHOLE.replace("'topic' =", "'scan.startup.mode' = 'latest-offset', 'topic' =")
    assert loaded(tmp_path, text + "ingest: {base: existing}\n").topic.startup.mode == "latest-offset"
    with pytest.raises(
        OptionError,
        match=r"orders\.yaml:4: topic: 'scan\.startup\.mode' is "
        "refused",
    ) as error:
        loaded(tmp_path, text)
    assert str(error.value).endswith("set 'ingest.base: existing'")


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        (
            "delta:",
            "quality: {suite: s.json, on-failure: quarantine}\ndelta:",
            "quality.on-failure: quarantine",
        ),
    ],
)
def test_unsupported_features(tmp_path: Path, old: str, new: str, what: str) -> None:
    with pytest.raises(UnsupportedError, match=r"orders\.yaml:\d+: topic: ") as error:
        loaded(tmp_path, WHOLE.replace(old, new))
    assert error.value.what == what


def test_warnings(tmp_path: Path) -> None:
    options = "'sink.delivery-guarantee' = 'none', 'properties.session.timeout.ms' = '9', 'topic' ="
    definition = loaded(tmp_path, WHOLE.replace("'topic' =", options))
    assert definition.warnings == (
        "'properties.session.timeout.ms' has no effect: Spark assigns the partitions to its readers, so they do not "
        "join a consumer group",
        "'sink.delivery-guarantee' = 'none': a failure may lose records; use 'at-least-once'",
    )


@pytest.mark.parametrize(
    ("delta", "ddl", "name"),
    [
        ("path: lake/orders", "orders", ("", "", "orders")),
        ("path: lake/orders", "shop.orders", ("", "shop", "orders")),
        ("path: lake/orders", "`main`.shop.orders", ("main", "shop", "orders")),
        ("table: orders_out", "main.shop.orders", ("", "", "orders_out")),
        ("table: prod.sales.orders_out", "orders", ("prod", "sales", "orders_out")),
    ],
)
def test_the_table_s_name_in_headers(
    tmp_path: Path, delta: str, ddl: str, name: tuple[str, str, str]
) -> None:
    text = WHOLE.replace("path: lake/orders", delta).replace("TABLE orders", f"TABLE {ddl}")
    option = "'sink.add-tableId-to-header-enabled' = 'true', 'topic' ="
    definition = loaded(tmp_path, text.replace("'topic' =", option))
    assert definition.topic.sink.headers == tuple(
        zip(("namespace", "schemaName", "tableName"), name, strict=True)
    )
    assert loaded(tmp_path, text).topic.sink.headers == ()


def test_secrets_in_with(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("hunter2\n", encoding="utf-8")
    options = (
        "'properties.ssl.key.password' = '${file:password}', 'properties.client.id' = 'c-${secret:s/k}',"
    )
    file = tmp_path / "orders.yaml"
    file.write_text(WHOLE.replace("'topic' =", f"{options} 'topic' ="), encoding="utf-8")
    definition = config.load(file, environ={}, secrets=lambda scope, key: f"{scope}-{key}")
    secrets = {k: v.reveal() for k, v in definition.topic.properties.items() if isinstance(v, Secret)}
    assert secrets == {"ssl.key.password": "hunter2", "client.id": "c-s-k"}
    assert "hunter2" not in repr(definition)
    assert "s-k" not in repr(definition)


def test_a_secret_that_is_a_wrong_value_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "servers").write_text("hunter2", encoding="utf-8")
    with pytest.raises(OptionError, match=r"its value \(not shown\) must be host:port") as error:
        loaded(tmp_path, WHOLE.replace("${env:KAFKA:localhost:9092}", "${file:servers}"))
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        ("ingest: {bad-records: quarantine}", DeltaTarget(path="lake/orders_quarantine")),
        ("ingest: {bad-records: quarantine, quarantine: {path: aside}}", DeltaTarget(path="aside")),
        ("ingest: {bad-records: quarantine, quarantine: {table: a.b}}", DeltaTarget(table="a.b")),
    ],
)
def test_the_quarantine(tmp_path: Path, sections: str, expected: DeltaTarget) -> None:
    definition = loaded(tmp_path, f"{WHOLE}{sections}\n")
    path = expected.path and str(tmp_path / expected.path)
    assert definition.quarantine == DeltaTarget(path=path, table=expected.table)


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ("{suite: s.json}", DeltaTarget(path="lake/orders_quality")),
        ("{suite: s.json, results: {path: results}}", DeltaTarget(path="results")),
        ("{suite: s.json, results: {table: ops.results}}", DeltaTarget(table="ops.results")),
    ],
)
def test_the_table_of_results(tmp_path: Path, section: str, expected: DeltaTarget) -> None:
    quality = loaded(tmp_path, f"{WHOLE}quality: {section}\n").quality
    assert quality is not None
    assert quality.results == replace(expected, path=expected.path and str(tmp_path / expected.path))


def test_results_have_one_location(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="exactly one of path and table must be set"):
        loaded(tmp_path, WHOLE + "quality: {suite: s.json, results: {}}\n")


def test_an_unused_quarantine_is_refused(tmp_path: Path) -> None:
    sections = "ingest: {bad-records: skip, quarantine: {path: aside}}"
    with pytest.raises(DefinitionError, match=r"ingest\.quarantine has no effect with bad-records: skip"):
        loaded(tmp_path, f"{WHOLE}{sections}\n")


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ("{}", Maintenance()),
        ("{every: 6 h, vacuum: false}", Maintenance(21_600, vacuum=False)),
        ("{optimize: false, retain: 0 h}", Maintenance(optimize=False, retain_seconds=0)),
        ("{every: 30 min, retain: 7 d}", Maintenance(1800, retain_seconds=604_800)),
    ],
)
def test_maintenance(tmp_path: Path, section: str, expected: Maintenance) -> None:
    assert loaded(tmp_path, f"{WHOLE}maintenance: {section}\n").maintenance == expected
    assert loaded(tmp_path, WHOLE).maintenance is None


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("{every: 5}", "maintenance.every: '5': text is expected"),
        (
            "{every: '5'}",
            "maintenance.every: '5': not legal; legal values are intervals with a unit, like '1 d' or '6 h'",
        ),
        ("{every: 0 s}", "maintenance.every: '0 s': not legal"),
        (
            "{retain: soon}",
            "maintenance.retain: 'soon': not legal; legal values are durations with a unit, like '7 d'",
        ),
        ("{optimize: false, vacuum: false}", "optimize and vacuum are both false; set one of them to true"),
        ("{vacuum: false, retain: 7 d}", "retain has no effect with vacuum: false"),
        ("{zorder: [id]}", "maintenance.zorder is not a legal key"),
    ],
)
def test_maintenance_that_is_refused(tmp_path: Path, section: str, message: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        loaded(tmp_path, f"{WHOLE}maintenance: {section}\n")
    assert message in str(refused.value)


COMPACT = {"cleanup.policy": "compact"}


def _with(section: str, text: str = WHOLE) -> str:
    return text.replace("topic:\n", f"topic:\n  create: {section}\n")


@pytest.mark.parametrize(
    ("section", "creation"),
    [
        ("{}", TopicCreation(None, None, COMPACT)),
        ("{partitions: '${env:N:6}', replication: 3}", TopicCreation(6, 3, COMPACT)),
        (
            "{config: {cleanup.policy: 'compact,delete', retention.ms: 1000, preallocate: true}}",
            TopicCreation(
                None,
                None,
                {"cleanup.policy": "compact,delete", "retention.ms": "1000", "preallocate": "true"},
            ),
        ),
    ],
)
def test_upsert_topics_are_compacted_by_default(
    tmp_path: Path, section: str, creation: TopicCreation
) -> None:
    definition = loaded(tmp_path, _with(section))
    assert definition.topic.create == creation
    shown = config.resolved(definition)["topic"]["create"]
    assert shown == {
        "partitions": creation.partitions,
        "replication": creation.replication,
        "config": creation.config,
    }


def test_other_topics_have_the_defaults_of_the_broker(tmp_path: Path) -> None:
    text = WHOLE.replace("'upsert-kafka'", "'kafka'").replace("'key.format' = 'json', ", "")
    text = text.replace(",\n      PRIMARY KEY (id) NOT ENFORCED", "")
    assert loaded(tmp_path, _with("{partitions: 2}", text)).topic.create == TopicCreation(2, None, {})
    assert loaded(tmp_path, text).topic.create is None


def test_a_pattern_cannot_be_created(tmp_path: Path) -> None:
    text = WHOLE.replace("'topic' = 'orders'", "'topic-pattern' = 'orders.*'")
    with pytest.raises(OptionError, match=r"orders\.yaml:4: topic: topic\.create cannot be combined with"):
        loaded(tmp_path, _with("{}", text))


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("{partitions: 0}", "topic.create.partitions: '0': a number of at least 1 is expected"),
        ("{partition: 1}", "topic.create.partition is not a legal key; did you mean 'partitions'?"),
        ("yes", "topic.create: 'yes': a mapping (key: value) is expected"),
    ],
)
def test_what_is_refused(tmp_path: Path, section: str, message: str) -> None:
    with pytest.raises(DefinitionError, match=re.escape(message)):
        loaded(tmp_path, _with(section))

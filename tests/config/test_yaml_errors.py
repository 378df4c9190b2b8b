"""Messages for illegal pipeline files: file, line, YAML path, legal values and the most similar key."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bridge import config
from bridge.errors import DdlError, DefinitionError
from tests.config.files import DDL, HEAD, REST, WHOLE, loaded

TRIGGERS = "legal values are available-now and intervals like '10 s'"
STARTS = "legal values are snapshot, latest, version:N, timestamp:2024-12-31T23:59:59Z"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("version: 1", "version: 2", "orders.yaml:1: version: '2': not legal; legal values are 1"),
        ("version: 1\n", "", "orders.yaml:1: version is missing"),
        (
            "name: orders",
            "name: -orders",
            "orders.yaml:2: name: '-orders': not legal; legal are letters, digits,",
        ),
        ("name: orders", "name: 7", "orders.yaml:2: name: '7': text is expected; quote the value"),
        ("delta:", "detla: 1\ndelta:", "orders.yaml:13: detla is not a legal key; did you mean 'delta'?"),
        (
            "{path: lake/orders}",
            "{path: a, xyzzy: b}",
            "orders.yaml:13: delta.xyzzy is not a legal key; legal keys are path, table, properties",
        ),
        (
            "{path: lake/orders}",
            "{path: a, table: b}",
            "orders.yaml:13: delta: exactly one of path and table must be set",
        ),
        ("{path: lake/orders}", "{}", "orders.yaml:13: delta: exactly one of path and table must be set"),
        ("{path: lake/orders}", "lake/orders", "delta: 'lake/orders': a mapping (key: value) is expected"),
        ("{path: lake/orders}", "{path: ''}", "orders.yaml:13: delta.path: '': it is empty"),
        (
            "{path: lake/orders}",
            "{table: a.b.c.d}",
            "legal forms are table, schema.table and catalog.schema.table",
        ),
        ("{checkpoint: work/orders}", "{}", "orders.yaml:14: run: checkpoint is missing; set it to a folder"),
        (
            "checkpoint: work",
            "state: a.b.c.d, checkpoint: work",
            "run.state: 'a.b.c.d': not legal; legal forms are table, schema.table and catalog.schema.table, and a path",
        ),
        (
            "checkpoint: work",
            "max_offsets_per_batch: 1, checkpoint: work",
            "did you mean 'max-offsets-per-batch'?",
        ),
        (
            "checkpoint: work",
            "max-offsets-per-batch: 0, checkpoint: work",
            "run.max-offsets-per-batch: '0': a number of at least 1 is expected",
        ),
        (
            "checkpoint: work",
            "trigger: often, checkpoint: work",
            f"run.trigger: 'often': not legal; {TRIGGERS}",
        ),
        (
            "checkpoint: work",
            "trigger: '10', checkpoint: work",
            f"run.trigger: '10': it has no unit; {TRIGGERS}",
        ),
        (
            "checkpoint: work",
            "step-timeout: '600', checkpoint: work",
            "run.step-timeout: '600': not legal; legal values are durations with a unit, like '10 min', and '0 s' for "
            "no bound",
        ),
        ("checkpoint: work", "trigger: 0 s, checkpoint: work", f"run.trigger: '0 s': not legal; {TRIGGERS}"),
        (
            "delta:",
            "ingest: {bad-records: drop}\ndelta:",
            "orders.yaml:13: ingest.bad-records: 'drop': not legal; legal values are 'fail', 'quarantine' or 'skip'",
        ),
        (
            "delta:",
            "ingest: {base: full}\ndelta:",
            "ingest.base: 'full': not legal; legal values are 'empty' or 'existing'",
        ),
        ("delta:", "publish: {start: version:x}\ndelta:", f"publish.start: 'version:x': not legal; {STARTS}"),
        ("delta:", "publish: {start: 'timestamp:noon'}\ndelta:", f"'timestamp:noon': not legal; {STARTS}"),
        ("delta:", "quality: {on-failure: warn}\ndelta:", "orders.yaml:13: quality.suite is missing"),
        ("delta:", "quality: {suit: x}\ndelta:", "quality.suit is not a legal key; did you mean 'suite'?"),
        ("  ddl: |\n" + DDL, "  {}\n", "orders.yaml:4: topic: exactly one of ddl and ddl_file must be set"),
        ("run:", "delta: {}\nrun:", "orders.yaml:14: delta is set twice (first on line 13)"),
        ("run:", "run: [", "not valid YAML: "),
        (
            "work/orders",
            "'${env:NOWHERE}'",
            "run.checkpoint: the environment variable NOWHERE is not set; set it",
        ),
        (
            "work/orders",
            "'${secret:a/b}'",
            "run.checkpoint: ${secret:...} is allowed in WITH only, because logs and reports show this",
        ),
        (
            "work/orders",
            "'${home:x}'",
            "run.checkpoint: ${home:x} is not a legal reference. Legal references are ${env:NAME}",
        ),
        (
            "${env:KAFKA:localhost:9092}",
            "${env:KAFKA}",
            "orders.yaml:4: topic: 'properties.bootstrap.servers': the environment variable KAFKA is not set",
        ),
        (
            "'topic' =",
            "'topik' =",
            "orders.yaml:4: topic: 'topik' is not an option of connector 'upsert-kafka'",
        ),
    ],
)
def test_a_file_that_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in WHOLE
    with pytest.raises(DefinitionError, match=re.escape(message)):
        loaded(tmp_path, WHOLE.replace(old, new, 1))


@pytest.mark.parametrize("key", ["metrics", "otlp", "alert", "lineage"])
def test_a_url_is_not_quoted_as_it_may_hold_a_password(tmp_path: Path, key: str) -> None:
    text = WHOLE.replace("run: {", f"run: {{{key}: 'https://u:hunter2@h:port/', ")
    with pytest.raises(DefinitionError, match=rf"run\.{key}: not legal: a URL needs a host") as refused:
        loaded(tmp_path, text)
    assert "hunter2" not in str(refused.value)


def test_all_errors_at_once(tmp_path: Path) -> None:
    text = WHOLE.replace("version: 1", "version: 3").replace("delta:", "zzz: 1\ndelta:")
    with pytest.raises(DefinitionError) as error:
        loaded(tmp_path, text)
    assert len(str(error.value).splitlines()) == 2


def test_a_substituted_value_is_not_quoted(tmp_path: Path) -> None:
    (tmp_path / "base").write_text("hunter2", encoding="utf-8")
    with pytest.raises(DefinitionError, match=re.escape("ingest.base: '${file:base}': not legal")) as error:
        loaded(tmp_path, WHOLE + "ingest: {base: '${file:base}'}\n")
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "orders.yaml: a pipeline file must be a mapping that starts with `version: 1`"),
        (b"- a\n", "orders.yaml: a pipeline file must be a mapping"),
        (b"\xff\xfe", "orders.yaml: the pipeline file is not UTF-8 text (byte 0)"),
        (b"a: b: c\n", "orders.yaml:1:5: not valid YAML: mapping values are not allowed here"),
    ],
)
def test_a_file_that_is_not_a_mapping(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "orders.yaml"
    file.write_bytes(content)
    with pytest.raises(DefinitionError, match=re.escape(message)):
        config.load(file)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(
        DefinitionError, match=re.escape("no.yaml: the pipeline file cannot be read: No such file")
    ):
        config.load(tmp_path / "no.yaml")


def test_a_missing_ddl_file(tmp_path: Path) -> None:
    with pytest.raises(
        DefinitionError,
        match=r"orders\.yaml:3: topic\.ddl_file: .*no\.sql "
        "cannot be read: No such",
    ):
        loaded(tmp_path, f"{HEAD}topic: {{ddl_file: no.sql}}\n{REST}")


def test_a_ddl_error_points_into_the_pipeline_file(tmp_path: Path) -> None:
    with pytest.raises(DdlError) as error:
        loaded(tmp_path, WHOLE.replace("note STRING", "note STRNG"))
    line = WHOLE.replace("note STRING", "note STRNG").splitlines()[error.value.line - 1]
    assert error.value.file == str(tmp_path / "orders.yaml")
    assert line[error.value.column - 1 :].startswith("STRNG")


def test_a_ddl_error_in_a_quoted_line(tmp_path: Path) -> None:
    text = f'{HEAD}topic: {{ddl: "CREATE TABLE t (id STRNG)"}}\n{REST}'
    with pytest.raises(DdlError) as error:
        loaded(tmp_path, text)
    assert text.splitlines()[error.value.line - 1][error.value.column - 1 :].startswith("STRNG")


def test_a_ddl_error_in_folded_text_has_both_positions(tmp_path: Path) -> None:
    text = f"{HEAD}topic:\n  ddl: >\n    CREATE TABLE t\n    (id STRNG)\n{REST}"
    with pytest.raises(DdlError, match=r"orders\.yaml:4:.*\(line 1, column \d+ of the DDL\)"):
        loaded(tmp_path, text)


def test_a_ddl_error_in_a_ddl_file(tmp_path: Path) -> None:
    (tmp_path / "orders.sql").write_text("CREATE TABLE t\n(id STRNG)", encoding="utf-8")
    with pytest.raises(DdlError) as error:
        loaded(tmp_path, f"{HEAD}topic: {{ddl_file: orders.sql}}\n{REST}")
    assert (error.value.file, error.value.line) == (str(tmp_path / "orders.sql"), 2)

"""Files of users are read from a local disk and from an object store; errors say what to do, without secrets."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bridge import config
from bridge.embedded.processes import HOST, free_port
from bridge.errors import DefinitionError
from bridge.secret import Secret
from bridge.sql import load_script
from bridge.store_options import given_settings
from bridge.user_files import folder_of, location_of, read_text, resolved
from tests.object_store import BUCKET, KEY, SECRET, ObjectStore

DDL = """\
CREATE TABLE orders (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'b:1',
  'properties.security.protocol' = 'SASL_PLAINTEXT', 'properties.sasl.mechanism' = 'PLAIN',
  'properties.sasl.jaas.config' = '${file:../secrets/jaas}',
  'key.format' = 'json', 'value.format' = '${env:FORMAT:json}');
"""
PIPELINE = """\
version: 1
name: orders
topic: {ddl_file: ddl/orders.sql}
delta: {path: ../lake/orders}
run: {checkpoint: ../lake/_checkpoints/orders}
quality: {suite: ../expectations/orders.json, gate: warn}
"""
JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required username='u' password='hush';"


@pytest.fixture
def folder(object_store: ObjectStore, unique: Callable[[str], str]) -> Iterator[str]:
    """The URI of a folder on the S3 server, which is read with Spark's settings for it."""
    with given_settings(lambda: spark_settings(object_store)):
        yield f"s3a://{BUCKET}/{unique('files')}"


def spark_settings(store: ObjectStore) -> dict[str, str]:
    return {f"spark.hadoop.{name}": value for name, value in store.settings().items()}


def put(store: ObjectStore, uri: str, text: str | bytes) -> str:
    body = text.encode() if isinstance(text, str) else text
    store.client().put_object(Bucket=BUCKET, Key=uri.removeprefix(f"s3a://{BUCKET}/"), Body=body)
    return uri


def refusal(uri: str) -> str:
    """What `bridge validate` says of a file that it cannot read."""
    with pytest.raises(DefinitionError) as refused:
        config.load(uri, environ={})
    message = str(refused.value)
    assert message.startswith(f"{uri}: the pipeline file cannot be read: ")
    assert KEY not in message and SECRET not in message
    return message.partition("cannot be read: ")[2]


def test_a_pipeline_on_a_store_finds_its_files_and_tables_beside_it(
    object_store: ObjectStore, folder: str
) -> None:
    file = put(object_store, f"{folder}/conf/orders.yaml", PIPELINE)
    put(object_store, f"{folder}/conf/ddl/orders.sql", DDL)
    put(object_store, f"{folder}/secrets/jaas", JAAS)
    put(object_store, f"{folder}/expectations/orders.json", '{"name": "s", "expectations": []}')
    definition = config.load(file, environ={})
    assert definition.base == f"{folder}/conf"
    assert definition.delta.path == f"{folder}/lake/orders"
    assert definition.run.checkpoint == f"{folder}/lake/_checkpoints/orders"
    assert definition.quality is not None and definition.quality.gate is not None
    assert definition.quality.suite == f"{folder}/expectations/orders.json"
    assert definition.quality.gate.text == '{"name": "s", "expectations": []}'
    assert definition.topic.properties["sasl.jaas.config"] == Secret(JAAS)
    # A Path of a URI has lost a slash.
    assert config.load(Path(file), environ={}) == definition


def test_a_script_on_a_store_keeps_its_state_beside_it(object_store: ObjectStore, folder: str) -> None:
    put(object_store, f"{folder}/secrets/jaas", JAAS)
    table = DDL.replace("orders", "counts")
    script = f"{DDL}{table}INSERT INTO counts SELECT id, name FROM orders;\n"
    found = load_script(put(object_store, f"{folder}/conf/counts.sql", script), environ={})
    assert (found.name, found.base) == ("counts", f"{folder}/conf")


def test_the_error_of_a_ddl_on_a_store_names_its_file_and_line(
    object_store: ObjectStore, folder: str
) -> None:
    file = put(object_store, f"{folder}/orders.yaml", PIPELINE)
    put(object_store, f"{folder}/ddl/orders.sql", "CREATE TABLE orders (\n  id BIGINTS\n)")
    with pytest.raises(DefinitionError, match=re.escape(f"{folder}/ddl/orders.sql:2:")):
        config.load(file, environ={})


def test_a_missing_file_and_a_missing_bucket_are_named(object_store: ObjectStore, folder: str) -> None:
    assert refusal(f"{folder}/orders.yaml") == "the store has no such file; check bucket and path"
    assert refusal(f"s3a://{BUCKET}") == "the URI names no file in the bucket"
    file = put(object_store, f"{folder}/orders.yaml", PIPELINE)
    with pytest.raises(
        DefinitionError, match=rf"orders\.yaml:3: topic\.ddl_file: the file {folder}/ddl/orders\.sql"
    ):
        config.load(file, environ={})
    with pytest.raises(
        DefinitionError, match=rf"^{folder}/x\.sql: the script cannot be read: the store has no"
    ):
        load_script(f"{folder}/x.sql")


def test_what_is_no_text_is_refused(object_store: ObjectStore, folder: str) -> None:
    file = put(object_store, f"{folder}/orders.yaml", b"version: 1\nname: \xff")
    with pytest.raises(DefinitionError, match=re.escape(f"{file}: the pipeline file is not UTF-8 text")):
        config.load(file)


_REFUSES = f"""
from http.server import BaseHTTPRequestHandler, HTTPServer


class Refuses(BaseHTTPRequestHandler):
    def do_HEAD(self):
        self.send_response(403)
        self.send_header("x-amz-request-id", "{KEY}")
        self.end_headers()

    do_GET = do_HEAD
    log_message = lambda *_: None

with HTTPServer(("{HOST}", 0), Refuses) as server:
    print(server.server_port, flush=True)
    server.serve_forever()
"""
"""A store of which a login may read nothing; a process of its own, as a client of Rust's lets no other thread run."""


def test_a_login_that_may_not_read_is_told_where_logins_come_from(object_store: ObjectStore) -> None:
    with subprocess.Popen([sys.executable, "-c", _REFUSES], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        settings = object_store.settings(url=f"http://{HOST}:{int(server.stdout.readline())}")
        with given_settings(lambda: {f"spark.hadoop.{k}": v for k, v in settings.items()}):
            said = refusal(f"s3a://{BUCKET}/conf/orders.yaml")
        server.kill()
    assert said.startswith("the store refused the request (403): the credentials are not valid or may not")
    assert said.endswith("from spark.hadoop.fs.s3a.* of --conf or spark-submit")


def test_a_store_that_does_not_answer_is_told_apart(object_store: ObjectStore) -> None:
    settings = object_store.settings(url=f"http://{HOST}:{free_port()}")
    with given_settings(lambda: {f"spark.hadoop.{k}": v for k, v in settings.items()}):
        assert refusal(f"s3a://{BUCKET}/orders.yaml").startswith("the store cannot be reached; check the net")


def test_without_credentials_the_error_says_where_they_come_from(
    object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    # The address of the machine's role, on which nothing answers.
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", f"http://{HOST}:{free_port()}")
    monkeypatch.setenv("AWS_ENDPOINT_URL", object_store.url)
    assert refusal(f"s3a://{BUCKET}/orders.yaml").startswith("no credentials were found")


@pytest.mark.parametrize(
    ("given", "location"),
    [
        ("conf/orders.yaml", "conf/orders.yaml"),
        ("C:/orders.yaml", "C:/orders.yaml"),
        ("orders:v2.yaml", "orders:v2.yaml"),
        ("file:///conf/orders.yaml", "/conf/orders.yaml"),
        ("file:/conf/orders.yaml", "/conf/orders.yaml"),
        ("S3A://b/orders.yaml", "s3a://b/orders.yaml"),
        (Path("s3a://b/orders.yaml"), "s3a://b/orders.yaml"),
        ("abfss://c@a.dfs.core.windows.net/o.yaml", "abfss://c@a.dfs.core.windows.net/o.yaml"),
    ],
)
def test_locations(given: str | Path, location: str) -> None:
    assert location_of(given) == location


@pytest.mark.parametrize("uri", ["hdfs://n/o.yaml", "dbfs:/Volumes/o.yaml", "https://h/o.yaml"])
def test_other_schemes_are_refused_with_the_way_out(uri: str) -> None:
    message = (
        f"{uri}: the bridge reads no files of {uri.partition(':')[0]}:; legal are paths of this machine, and "
    )
    with pytest.raises(
        DefinitionError, match=f"^{re.escape(message)}s3a://, s3://, abfs://, abfss://, gs://.*--files URI"
    ):
        location_of(uri)


def test_credentials_in_a_uri_are_refused_and_not_shown() -> None:
    with pytest.raises(
        DefinitionError, match=r"^s3a://bucket/o\.yaml: the URI has credentials in it"
    ) as said:
        location_of("s3a://user:hush@bucket/o.yaml")
    assert "hush" not in str(said.value)


@pytest.mark.parametrize(
    ("folder", "path", "expected"),
    [
        ("/conf", "../lake/orders", "/lake/orders"),
        ("/conf", "/lake/orders", "/lake/orders"),
        ("s3a://b/conf", "../lake/orders", "s3a://b/lake/orders"),
        ("s3a://b", "orders.json", "s3a://b/orders.json"),
        ("s3a://b/conf", "../../../orders", "s3a://b/orders"),
        ("s3a://b/conf", "/dbfs/lake", "/dbfs/lake"),
    ],
)
def test_paths_are_relative_to_the_folder(folder: str, path: str, expected: str) -> None:
    assert resolved(folder, path) == expected


def test_the_folder_of_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert folder_of("conf/orders.yaml") == str(tmp_path / "conf")
    assert folder_of("s3a://b/conf/orders.yaml") == "s3a://b/conf"
    assert folder_of("s3a://b/orders.yaml") == "s3a://b"


def test_lines_end_alike_on_both(object_store: ObjectStore, folder: str, tmp_path: Path) -> None:
    text = b"a: 1\r\nb: \xc3\xa9\r\n"
    (tmp_path / "f").write_bytes(text)
    assert (
        read_text(str(tmp_path / "f")) == read_text(put(object_store, f"{folder}/f", text)) == "a: 1\nb: é\n"
    )

"""bridge peek on a real broker: start, limit, key filter, hidden values."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import fastavro
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from bridge.cli.app import main
from bridge.embedded.broker import Broker
from bridge.embedded.schema_registry import SchemaRegistryServer
from bridge.errors import DefinitionError, KafkaError
from bridge.peek import Start, peek
from tests.kafka.topics import Fresh, send, transaction
from tests.peek.pipelines import definition, write


def document(id: int, name: str = "a") -> tuple[bytes, bytes]:
    return f'{{"id":{id}}}'.encode(), f'{{"id":{id},"name":"{name}","amount":1.50}}'.encode()


@pytest.fixture
def topic(fresh: Fresh, broker: Broker) -> str:
    """Ten records on two partitions, a second apart: ids 0 to 9, the last one a tombstone."""
    name = fresh("peeked", partitions=2)
    for id in range(10):
        key, value = document(id)
        row = (key, None if id == 9 else value)
        send(broker.bootstrap, name, [row], partition=id % 2, timestamp=1_700_000_000_000 + 1000 * id)
    return name


def ids(folder: Path, broker: Broker, topic: str, **more: object) -> list[int]:
    actual = peek(definition(folder, topic, servers=broker.bootstrap), **more)  # type: ignore[arg-type]
    return [json.loads(record.key.json or "")["id"] for record in actual]


def test_where_it_begins_and_how_much_it_shows(tmp_path: Path, broker: Broker, topic: str) -> None:
    assert ids(tmp_path, broker, topic, limit=3) == [7, 8, 9], "the newest ones, in the order of time"
    assert ids(tmp_path, broker, topic, start=Start("earliest"), limit=3) == [0, 1, 2]
    assert ids(tmp_path, broker, topic, start=Start("offset", 4)) == [8, 9]
    at = Start.of("2023-11-14T22:13:25Z")
    assert ids(tmp_path, broker, topic, start=at, limit=2) == [5, 6]
    assert ids(tmp_path, broker, topic, start=Start.of("2030-01-01")) == []
    assert ids(tmp_path, broker, topic, limit=100) == list(range(10))


def test_records_of_one_key(tmp_path: Path, broker: Broker, topic: str) -> None:
    for key in ("3", '{"id":3}', '{"id": 3}'):
        assert ids(tmp_path, broker, topic, key=key, limit=1) == [3], key
    assert ids(tmp_path, broker, topic, key="33") == []


def test_the_newest_of_a_partition_that_ends_with_markers(
    fresh: Fresh, tmp_path: Path, broker: Broker
) -> None:
    """Aborted records and markers have offsets, and are not shown."""
    name = fresh("markers", partitions=1)
    send(broker.bootstrap, name, [document(1), document(2)])
    for _ in range(3):
        transaction(broker.bootstrap, name, [b"aborted"] * 5, commit=False)
    assert ids(tmp_path, broker, name, limit=2) == [1, 2]


def test_an_offset_that_no_partition_has(tmp_path: Path, broker: Broker, topic: str) -> None:
    with pytest.raises(KafkaError, match=rf"--from 99: no partition of '{topic}' has that offset; .* 0 to 4"):
        ids(tmp_path, broker, topic, start=Start("offset", 99))


def test_an_illegal_start() -> None:
    with pytest.raises(DefinitionError, match="--from yesterday: legal values are earliest, latest, an"):
        Start.of("yesterday")


def test_bytes_that_cannot_be_decoded_are_shown(
    fresh: Fresh, tmp_path: Path, broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    name = fresh("bytes", partitions=1)
    send(broker.bootstrap, name, [(None, b"{broken"), document(1)], headers=[("trace", b"7")])
    file = str(write(tmp_path, name, servers=broker.bootstrap))
    assert main(["peek", file]) == 0
    out = capsys.readouterr().out
    assert f"{name}-0 offset 0" in out and "b'{broken'  (undecodable: not JSON at character 1)" in out
    assert '  value  {"id":1,"name":"a","amount":1.50}' in out and "  headers  trace=7" in out
    assert f"2 records of {name}" in out
    assert main(["peek", file, "--json"]) == 0
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["value"] == {"undecodable": "not JSON at character 1", "base64": "e2Jyb2tlbg=="}
    assert (first["key"], second["key"], second["kind"]) == (None, {"id": 1}, "+U")
    assert second["headers"] == {"trace": "7"}


def test_what_a_pipeline_hides_is_not_shown(
    fresh: Fresh, tmp_path: Path, broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    name = fresh("hidden", partitions=1)
    secret = document(1, "Ada")
    send(broker.bootstrap, name, [secret, (b"Ada", b"{Ada")], headers=[("who", b"Ada")])
    some = write(tmp_path, name, servers=broker.bootstrap, sections="peek: {hide: [name]}\n")
    assert main(["peek", str(some), "--from", "0", "--max", "1"]) == 0
    out = capsys.readouterr().out
    assert '"name": "***"' in out and '{"id": 1}' in out
    broken = ["peek", str(some), "--json", "--max", "1"]
    assert main(broken) == 0 and "Ada" not in json.dumps(
        {k: v for k, v in json.loads(capsys.readouterr().out).items() if k != "headers"}
    )
    every = write(tmp_path, name, servers=broker.bootstrap, sections="peek: {hide: all}\n")
    for more in ([], ["--json"]):
        assert main(["peek", str(every), *more]) == 0
        out = capsys.readouterr().out
        assert "Ada" not in out and "hidden" in out


def test_hiding_an_unknown_field_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match=r"peek\.hide: 'email' is not a field .* amount, id, name"):
        definition(tmp_path, sections="peek: {hide: [email]}\n")


def test_confluent_avro_is_read_by_the_writers_schema(
    fresh: Fresh, tmp_path: Path, broker: Broker, registry: SchemaRegistryServer
) -> None:
    """A writer with another field, written by fastavro."""
    name = fresh("framed", partitions=1)
    schema = {"type": "record", "name": "r", "fields": [{"name": "more", "type": "string"}]}
    id = SchemaRegistryClient({"url": registry.url}).register_schema(
        f"{name}-value", Schema(json.dumps(schema), "AVRO")
    )
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), {"more": "x"})
    framed = b"\x00" + id.to_bytes(4, "big") + out.getvalue()
    rows = [(b'{"id":1}', framed), (b'{"id":2}', b"\x00\x7f\xff\xff\xff"), (b'{"id":3}', b"plain")]
    send(broker.bootstrap, name, rows)
    options = {"value__format": "avro-confluent", "value__avro_confluent__url": registry.url}
    actual = peek(definition(tmp_path, name, servers=broker.bootstrap, **options))
    good, unknown, plain = (record.value for record in actual)
    assert good.as_value() == {"more": "x"}
    assert unknown.reason == "schema id 2147483647 is not known to the schema registry"
    assert plain.reason.startswith("not in Confluent's framing")


def test_it_starts_no_spark(tmp_path: Path, broker: Broker, topic: str) -> None:
    """Checked in a process of its own."""
    file = write(tmp_path, topic, servers=broker.bootstrap)
    program = (
        "import sys; from bridge.cli.app import main; code = main(sys.argv[1:]); "
        "import pyspark; assert pyspark.SparkContext._jvm is None; sys.exit(code)"
    )
    command = [sys.executable, "-c", program, "peek", str(file)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"10 records of {topic}" in done.stdout

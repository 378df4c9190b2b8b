"""`--conf` reaches the reader of a pipeline file on a store, and no later command."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bridge.cli import main
from bridge.cli.store_settings import conf_settings
from bridge.errors import DefinitionError
from bridge.store_options import file_options
from tests.object_store import BUCKET, KEY, SECRET, ObjectStore

FILE = "version: 1\nname: orders\ntopic: {ddl: 'CREATE TABLE x'}\ndelta: {path: d}\nrun: {checkpoint: c}\n"


def test_a_file_on_a_store_is_read_with_the_settings_of_the_command(
    object_store: ObjectStore, unique: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    key = f"{unique('conf')}/orders.yaml"
    object_store.client().put_object(Bucket=BUCKET, Key=key, Body=FILE.encode())
    uri, conf = f"s3a://{BUCKET}/{key}", []
    for name, value in object_store.settings().items():
        conf += ["--conf", f"spark.hadoop.{name}={value}"]
    assert main(["ingest", uri, *conf]) == 2
    said = "".join(capsys.readouterr().err.split())
    assert f"{uri}:3:" in said  # the position of an error in its DDL: it has been read
    assert KEY not in said and SECRET not in said
    assert "aws_access_key_id" not in file_options(uri)


def test_pairs_have_an_equals_sign() -> None:
    assert conf_settings(["a=b=c", "d="]) == {"a": "b=c", "d": ""}
    with pytest.raises(DefinitionError, match=r"^--conf a: expected key=value$"):
        conf_settings(["a"])

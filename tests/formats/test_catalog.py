"""Formats by name, and a format that is registered by one declaration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bridge.config.publish_rules import check_publication
from bridge.definition import Definition, Publish
from bridge.errors import DefinitionError, OptionError, UnsupportedError
from bridge.formats import catalog
from bridge.formats.base import Decoder, FastPathDecoder
from bridge.options import Support
from bridge.options.formats import FORMATS, register
from bridge.peek.view import reader
from tests.formats.made_up import UpperFormat, registered
from tests.formats.support import row_type, scalar
from tests.peek.pipelines import definition, value_spec


def _definition(folder: Path, columns: str) -> Definition:
    return definition(
        folder, columns=columns, connector="kafka", key__format=None, value__format=None, format="upper"
    )


@pytest.fixture
def upper() -> Iterator[None]:
    with registered():
        yield


def test_every_available_format_is_found_under_its_own_name() -> None:
    assert [catalog.get(name).name for name in catalog.available()] == list(catalog.available())
    assert set(catalog.available()) == {name for name, f in FORMATS.items() if f.support is Support.HONOURED}


def test_a_declared_format_without_code_is_unsupported() -> None:
    with pytest.raises(
        UnsupportedError, match=r"format 'protobuf' is not supported yet; available: .*json"
    ) as error:
        catalog.get("protobuf")
    assert error.value.what == "format 'protobuf'"


def test_an_unknown_format_lists_the_available_ones() -> None:
    with pytest.raises(OptionError, match=r"format 'jason' is unknown; available: .*json"):
        catalog.get("jason")


@pytest.mark.usefixtures("upper")
def test_one_declaration_is_enough_for_the_pipeline_file(tmp_path: Path) -> None:
    loaded = _definition(tmp_path, "v STRING")
    assert loaded.topic.value.name == "upper"
    with pytest.raises(DefinitionError, match=r"format 'upper' writes a STRING \(format of the value\)"):
        _definition(tmp_path, "v INT")
    with pytest.raises(OptionError, match="The 'upper' format only supports single physical column"):
        _definition(tmp_path, "v STRING, w STRING")
    with pytest.raises(DefinitionError, match="carry cannot be combined with format 'upper'"):
        check_publication(replace(Publish(), carry=True), loaded.topic)


@pytest.mark.usefixtures("upper")
def test_one_declaration_is_enough_for_the_catalog() -> None:
    assert "upper" in catalog.available()
    made, row = catalog.get("upper"), row_type(v=scalar("STRING"))
    assert isinstance(made, UpperFormat)
    decoder: Decoder = made.decoder(row, {})
    assert not isinstance(decoder, FastPathDecoder)
    assert made.encoder(row, {})


@pytest.mark.usefixtures("upper")
def test_one_declaration_is_enough_for_peek(tmp_path: Path) -> None:
    spec = value_spec(tmp_path, "upper", "v STRING")
    assert reader(spec)(b"ABC") == '{"v": "abc"}'


def test_a_format_is_registered_once() -> None:
    with pytest.raises(ValueError, match="format 'json' is registered already"):
        register(FORMATS["json"])
    assert "upper" not in FORMATS

"""`delta.merge-columns` in a pipeline file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bridge.errors import DefinitionError
from tests.config.files import WHOLE, loaded

DDL = "id BIGINT, note STRING,"
WIDER = "id BIGINT, note STRING, amount INT, at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL,"


def own(tmp_path: Path, columns: str, ddl: str = WIDER) -> tuple[str, ...]:
    text = WHOLE.replace(DDL, ddl).replace("delta: {", f"delta: {{merge-columns: {columns}, ")
    return loaded(tmp_path, text).delta.merge_columns


def test_without_it_the_table_is_of_this_pipeline_alone(tmp_path: Path) -> None:
    assert loaded(tmp_path, WHOLE).delta.merge_columns == ()


def test_they_are_the_columns_of_the_ddl_outside_the_key_in_its_order(tmp_path: Path) -> None:
    assert own(tmp_path, "all") == ("note", "amount", "at")
    assert own(tmp_path, "[at, note, amount]") == ("note", "amount", "at")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            "[note, amount]",
            "'at' is a column of the DDL, but not in the list, so it would not be written; add it, ",
        ),
        (
            "[note, amount, at, id]",
            "'id' is in the PRIMARY KEY, which all pipelines of the table share; leave it out",
        ),
        (
            "[note, sum]",
            "'sum' is not a column of the DDL; its columns outside the PRIMARY KEY are note, amount, at",
        ),
    ],
)
def test_a_list_of_other_columns(tmp_path: Path, columns: str, message: str) -> None:
    with pytest.raises(DefinitionError, match=f"delta.merge-columns: {re.escape(message)}"):
        own(tmp_path, columns)


@pytest.mark.parametrize("columns", ["[]", "[note, NOTE]", "3", "[3]", "none"])
def test_values_that_are_not_legal(tmp_path: Path, columns: str) -> None:
    with pytest.raises(DefinitionError, match="legal values are all and lists of different columns"):
        own(tmp_path, columns)


def test_a_ddl_of_key_columns_only(tmp_path: Path) -> None:
    with pytest.raises(
        DefinitionError, match="no column outside the PRIMARY KEY, so there is nothing to merge"
    ):
        own(tmp_path, "all", "id BIGINT,")


def test_a_ddl_without_a_key(tmp_path: Path) -> None:
    text = WHOLE.replace("note STRING,\n      PRIMARY KEY (id) NOT ENFORCED", "note STRING")
    text = text.replace("upsert-kafka", "kafka").replace("'key.format' = 'json', ", "")
    with pytest.raises(
        DefinitionError, match="no PRIMARY KEY, by which the rows of several topics become one"
    ):
        loaded(tmp_path, text.replace("delta: {", "delta: {merge-columns: all, "))

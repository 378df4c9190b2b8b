"""Scripts for the tests: three sources, a sink as each test needs it, and one INSERT."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from bridge.errors import BridgeError, DefinitionError
from bridge.sql import InsertPlan, Script, load_script

KAFKA = "'properties.bootstrap.servers' = 'b:1'"
UPSERT = f"'connector' = 'upsert-kafka', {KAFKA}, 'key.format' = 'json', 'value.format' = 'json'"
CONNECTORS = {
    "upsert-kafka": f"{UPSERT}, 'topic' = 's'",
    "kafka": f"'connector' = 'kafka', 'topic' = 's', {KAFKA}, 'format' = 'json'",
    "debezium": f"'connector' = 'kafka', 'topic' = 's', {KAFKA}, 'format' = 'debezium-json'",
    "delta": "'connector' = 'delta', 'path' = 'lake/s'",
    "print": "'connector' = 'print'",
    "blackhole": "'connector' = 'blackhole'",
}
SOURCES = (
    "CREATE TABLE views (user_id BIGINT, page INT, ts TIMESTAMP(3), region STRING, price DECIMAL(10, 2), ok BOOLEAN, "
    "tags MAP<STRING, INT>, place ROW<a INT, b ROW<c STRING>>) "
    f"WITH ('connector' = 'kafka', 'topic' = 'views', {KAFKA}, 'format' = 'json');\n"
    "CREATE TABLE users (id BIGINT, name STRING, city STRING, PRIMARY KEY (id) NOT ENFORCED) "
    f"WITH ({UPSERT}, 'topic' = 'users');\n"
    "CREATE TABLE orders (id BIGINT, user_id BIGINT, amount DECIMAL(10, 2), PRIMARY KEY (id) NOT ENFORCED) "
    "WITH ('connector' = 'delta', 'path' = 'lake/orders');\n"
)
"""Lines 1 to 3: append-only views, and the keyed tables users and orders."""


def sink(columns: str, key: str = "", connector: str = "upsert-kafka", name: str = "s") -> str:
    """The CREATE TABLE of a sink, on one line."""
    primary = f", PRIMARY KEY ({key}) NOT ENFORCED" if key else ""
    return f"CREATE TABLE {name} ({columns}{primary}) WITH ({CONNECTORS[connector]});\n"


def load(text: str, environ: Mapping[str, str] | None = None) -> Script:
    """The script `text`, named t.sql, with an environment of its own."""
    return load_script("t.sql", text=text, environ=environ or {})


def plan(query: str, columns: str = "a STRING, b BIGINT", key: str = "a", connector: str = "") -> InsertPlan:
    """The plan of one INSERT into `s`; the query starts on line 6."""
    chosen = connector or ("upsert-kafka" if key else "kafka")
    text = f"{SOURCES}{sink(columns, key, chosen)}INSERT INTO s\n{query};\n"
    return load(text, {"CITY": "Ulm"}).inserts[-1]


def refusal(query: str, columns: str = "a STRING, b BIGINT", key: str = "a", connector: str = "") -> str:
    """The message that `plan(...)` raises."""
    with pytest.raises(DefinitionError) as error:
        plan(query, columns, key, connector)
    return str(error.value)


def script_refusal(text: str) -> str:
    """The message that a whole script raises."""
    with pytest.raises(BridgeError) as error:
        load(text)
    return str(error.value)

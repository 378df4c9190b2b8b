"""The scripts of the connectors' manuals, as printed but for places. A CREATE TABLE that no script uses gets a query.

The manuals are found beside the checkout, or in the folder that BRIDGE_SEEDS_DIR names; elsewhere there are no such
scripts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks.flink_scripts.cases import Case, Insert
from benchmarks.flink_scripts.sources import Printed

_ROOT = Path(__file__).parents[2]
_STATEMENT = re.compile(
    r"^CREATE TABLE (?:(?!^CREATE TABLE).)*?^\)\s*WITH\s*\(.*?^\s*\);?$|^INSERT INTO.*?;$",
    re.MULTILINE | re.DOTALL,
)
_TOPIC = "'topic' = 'user_behavior',"
_PLACEHOLDERS = {
    "'<yourTopicName>'": "'views'",
    "'<host:port>'": "'broker:9092'",
    "'...'": "'broker:9092'",
    # Manual 004 leaves out options that its examples share.
    "\n  ...\n": f"\n  {_TOPIC} 'properties.bootstrap.servers' = 'broker:9092',\n",
}


def manuals() -> Path | None:
    """The folder of the manuals; None where there is none."""
    named = os.environ.get("BRIDGE_SEEDS_DIR")
    folder = Path(named) if named else _ROOT.parent / "shared" / "seeds"
    return folder if named or folder.is_dir() else None


def statements(folder: Path, manual: str) -> list[str]:
    """The CREATE TABLEs and INSERTs of a manual, each with the `;` that some lack."""
    [file] = folder.glob(f"{manual}*")
    found = _STATEMENT.findall(file.read_text(encoding="utf-8"))
    for placeholder, value in _PLACEHOLDERS.items():
        found = [text.replace(placeholder, value) for text in found]
    found = [
        text if "format'" in text else text.replace(_TOPIC, f"{_TOPIC} 'format' = 'json',") for text in found
    ]
    return [text.rstrip(";") + ";" for text in found]


def manual_cases() -> list[Case]:
    """All of them; none where the manuals are not."""
    folder = manuals()
    if folder is None:
        return []
    every = {name: [t.rstrip(";") for t in statements(folder, name)] for name in ("000", "001", "003", "004")}
    return [*_pageviews(every["000"], every["001"]), *_kafka(every["003"]), *_apache(every["004"])]


def _pageviews(apache: list[str], other: list[str]) -> Iterator[Case]:
    """As printed, Flink 2.0 refuses both; with the precision and the column that it asks for it takes them."""
    sink, source, insert = apache
    read = (Printed("pageviews", "pageviews", source),)
    why = "it selects a column that its table does not have; Flink refuses it, too"
    yield Case("m000", "manuals", (_printed("m000", sink, insert),), printed=read, refused=why)
    insert = insert.replace("region,", "user_region,").replace("BY region", "BY user_region")
    yield from _with_precision("m000", source, sink, insert)
    source, sink, insert = other[:3]
    read = (Printed("pageviews", "pageviews", source),)
    why = "Flink refuses a watermark on a TIMESTAMP, which has six digits"
    yield Case("m001", "manuals", (_printed("m001", sink, insert),), printed=read, differs=why)
    yield from _with_precision("m001", source, sink, insert)


def _with_precision(manual: str, source: str, sink: str, insert: str) -> Iterator[Case]:
    name = f"{manual}_corrected"
    text = source.replace(" TIMESTAMP,", " TIMESTAMP(3),")
    read = (Printed("pageviews", "pageviews", text),)
    yield Case(name, "manuals", (_printed(name, sink, insert),), printed=read)


def _kafka(texts: list[str]) -> Iterator[Case]:
    events, orders, insert, avro, keyed, once = texts
    source = orders.replace("order_events_sink", "orders_source")
    read = (Printed("orders_source", "product_orders", source),)
    yield Case("m003_orders", "manuals", (_printed("m003_orders", orders, insert),), printed=read)
    read = (Printed("user_events", "user_events", events),)
    rows = Insert(
        "m003_events",
        "user_id BIGINT, item_id BIGINT, category STRING, behavior STRING, at_ TIMESTAMP_LTZ(3)",
        "SELECT user_id, item_id, category, behavior, CAST(event_ts AS TIMESTAMP_LTZ(3)) FROM user_events",
    )
    yield Case("m003_events", "manuals", (rows,), printed=read)
    windows = Insert(
        "m003_windows",
        "started TIMESTAMP(3), behavior STRING, n BIGINT",
        "SELECT window_start, behavior, COUNT(*) FROM TABLE(TUMBLE(TABLE user_events, DESCRIPTOR(event_ts), "
        "INTERVAL '1' SECOND)) GROUP BY window_start, window_end, behavior",
    )
    yield Case("m003_windows", "manuals", (windows,), printed=read)
    for name, sink, columns in (
        ("m003_avro", avro, "user_id, note, CAST(ts AS TIMESTAMP(3))"),
        ("m003_keyed", keyed, "user_id, note"),
        ("m003_once", once, "user_id, note"),
        ("m003_once_corrected", _with_timeout(once.replace(" value ", " `value` ")), "user_id, note"),
    ):
        table = sink.split()[2]
        differs = "Flink refuses `value` as a name unless it is quoted" if sink is once else ""
        filled = _printed(name, sink, f"INSERT INTO {table} SELECT {columns} FROM visits")
        yield Case(name, "manuals", (filled,), differs=differs)


def _with_timeout(text: str) -> str:
    """Flink asks for transactions of an hour, which a broker refuses by default."""
    return text.replace("WITH (", "WITH ('properties.transaction.timeout.ms' = '600000', ", 1)


def _apache(texts: list[str]) -> Iterator[Case]:
    metadata, more, debezium, json, keyed, prefixed, *_secured = texts
    changes_by_key = debezium.replace(
        "`behavior` STRING", "`behavior` STRING, PRIMARY KEY (item_id) NOT ENFORCED"
    )
    row = "user_id BIGINT, item_id BIGINT, behavior STRING"
    for name, text, topic, columns, query in (
        (
            "m004_csv",
            metadata,
            "behaviors_csv",
            f"{row}, ts TIMESTAMP_LTZ(3)",
            "user_id, item_id, behavior, ts",
        ),
        (
            "m004_metadata",
            more,
            "behaviors_csv",
            f"at_ TIMESTAMP_LTZ(3), part BIGINT, place BIGINT, {row}",
            "event_time, `partition`, `offset`, user_id, item_id, behavior",
        ),
        ("m004_json", json, "behaviors_json", row, "user_id, item_id, behavior"),
        ("m004_keyed", keyed, "behaviors_keyed", row, "user_id, item_id, behavior"),
        (
            "m004_prefixed",
            prefixed,
            "behaviors_versioned",
            "k_version INT, k_user_id BIGINT, k_item_id BIGINT, version INT, behavior STRING",
            "k_version, k_user_id, k_item_id, version, behavior",
        ),
        ("m004_debezium", debezium, "behaviors_changed", _CHANGED[0], _CHANGED[1]),
        ("m004_debezium_key", changes_by_key, "behaviors_changed", _CHANGED[0], _CHANGED[1]),
    ):
        key = "item_id" if "debezium" in name else ""
        refused = "a table with updates and deletes needs a PRIMARY KEY" if text is debezium else ""
        insert = Insert(name, columns, f"SELECT {query} FROM KafkaTable", key)
        yield Case(name, "manuals", (insert,), printed=(Printed("KafkaTable", topic, text),), refused=refused)


_CHANGED = (
    "at_ TIMESTAMP_LTZ(3), origin STRING, user_id BIGINT, item_id BIGINT, behavior STRING",
    "event_time, origin_table, user_id, item_id, behavior",
)


def _printed(script: str, sink: str, insert: str) -> Insert:
    """An INSERT and the CREATE TABLE of its sink."""
    words = insert.rstrip(";").split()
    key = re.search(r"PRIMARY KEY \((\w+)\)", sink)
    format = "avro" if "'avro'" in sink else "json"
    query = " ".join(words[3:])
    return Insert(words[2], "", query, key[1] if key else "", "", format, printed=sink, script=script)

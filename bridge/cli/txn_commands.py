"""`bridge txn`: the transactions of a pipeline that publishes exactly-once."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from bridge import config
from bridge.cli import process
from bridge.cli.arguments import Conf, File, Json, Master
from bridge.console import Screen, duration
from bridge.definition import Definition

if TYPE_CHECKING:
    from bridge.kafka.admin_transactions import Transaction

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True, help="Show and end the transactions of a pipeline that publishes exactly-once."
)


@app.command("list")
def show(file: File, json: Json = False, master: Master = None, conf: Conf = None) -> None:
    """Show the transactions whose ids are sink.transactional-id-prefix, or begin with it and '-'. Changes nothing.

    One that is Ongoing keeps readers of committed records waiting at its first record, until it is committed,
    aborted, or older than its timeout.
    """
    screen, definition = Screen(quiet=json), config.load(file)
    from bridge.kafka.admin_transactions import list_transactions

    with process.session(screen, definition, master, conf) as spark:
        transactions = list_transactions(spark, definition.topic)
    rows = {t.id: _line(t) for t in transactions} or {"": "none"}
    screen.result(_title(definition), [asdict(t) for t in transactions], rows=rows, json=json)


@app.command()
def abort(
    file: File,
    everything: Annotated[
        bool,
        typer.Option(
            "--all", help="Also ids that only begin with the prefix and '-': Flink's, or another pipeline's."
        ),
    ] = False,
    json: Json = False,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """End the transactions of sink.transactional-id-prefix that are under way. Their records will not be seen.

    For transactions that a run has left open that will not come back. A publish that is still running is fenced
    by it and fails; the next run sends again what was lost.
    """
    screen, definition = Screen(quiet=json), config.load(file)
    from bridge.kafka import admin_transactions

    with process.session(screen, definition, master, conf) as spark:
        ended, left = admin_transactions.abort_transactions(spark, definition.topic, others=everything)
    rows = {t.id: f"ended: {_line(t)}" for t in ended}
    rows |= {
        t.id: f"left alone, for the bridge makes no such id; --all ends it, too: {_line(t)}" for t in left
    }
    result = {"ended": [asdict(t) for t in ended], "left": [asdict(t) for t in left]}
    screen.result(_title(definition), result, rows=rows or {"": "none is under way"}, json=json)


def _title(definition: Definition) -> str:
    return f"transactions of {definition.topic.sink.transactional_id_prefix}"


def _line(transaction: Transaction) -> str:
    t = transaction
    age = "" if t.seconds is None else f" for {duration(t.seconds)} (timeout {duration(t.timeout_seconds)})"
    wrote = f", {' '.join(t.partitions)}" if t.partitions else ""
    return f"{t.state}{age}, producer {t.producer_id} epoch {t.epoch}{wrote}"

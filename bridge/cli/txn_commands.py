"""Defines `bridge txn`: list and abort the transactions of an exactly-once publish."""

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


app = typer.Typer(no_args_is_help=True, help="List and abort the transactions of an exactly-once publish.")


@app.command("list")
def show(file: File, json: Json = False, master: Master = None, conf: Conf = None) -> None:
    """List transactions whose id is sink.transactional-id-prefix, or starts with it and '-'. Changes nothing.

    An Ongoing transaction blocks read_committed consumers at its first record until it is committed
    or aborted, or its timeout expires.
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
            "--all",
            help="Also abort ids of other writers that start with the prefix and '-', e.g. those of Flink.",
        ),
    ] = False,
    json: Json = False,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Abort the open transactions of sink.transactional-id-prefix. Consumers never see their records.

    Use it for transactions that a retired run left open. It fences a publish that is still running,
    which then fails; the next run sends the aborted records again.
    """
    screen, definition = Screen(quiet=json), config.load(file)
    from bridge.kafka import admin_transactions

    with process.session(screen, definition, master, conf) as spark:
        ended, left = admin_transactions.abort_transactions(spark, definition.topic, others=everything)
    rows = {t.id: f"aborted: {_line(t)}" for t in ended}
    rows |= {
        t.id: f"not aborted, since the bridge creates no such id; --all aborts it, too: {_line(t)}"
        for t in left
    }
    result = {"ended": [asdict(t) for t in ended], "left": [asdict(t) for t in left]}
    screen.result(_title(definition), result, rows=rows or {"": "no open transaction"}, json=json)


def _title(definition: Definition) -> str:
    return f"transactions of {definition.topic.sink.transactional_id_prefix}"


def _line(transaction: Transaction) -> str:
    t = transaction
    age = "" if t.seconds is None else f" for {duration(t.seconds)} (timeout {duration(t.timeout_seconds)})"
    wrote = f", {' '.join(t.partitions)}" if t.partitions else ""
    return f"{t.state}{age}, producer {t.producer_id} epoch {t.epoch}{wrote}"

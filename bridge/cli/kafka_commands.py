"""Defines `bridge topics` (describe and create a file's topics) and `bridge txn` (list and abort transactions)."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from bridge import config
from bridge.cdc_jobs import is_job, load_job
from bridge.cli import process
from bridge.cli.arguments import Conf, Env, File, FileOrScript, Json, Master
from bridge.cli.script_pipelines import is_script
from bridge.console import Screen, duration
from bridge.definition import Definition, Topic, TopicCreation
from bridge.errors import DefinitionError
from bridge.sql import Script, load_script

if TYPE_CHECKING:
    from bridge.kafka.admin_transactions import Transaction
    from bridge.kafka.topic_creation import FoundTopic


def topics(
    file: FileOrScript,
    create: Annotated[
        bool, typer.Option("--create", help="Create the missing ones; an existing topic is not changed.")
    ] = False,
    describe: Annotated[bool, typer.Option("--describe", help="Describe them, as without --create.")] = False,
    partitions: Annotated[
        int | None,
        typer.Option(min=1, help="With --create: partitions; default: topic.create's, or the broker's."),
    ] = None,
    replication_factor: Annotated[
        int | None,
        typer.Option(min=1, help="With --create: replicas; default: topic.create's, or the broker's."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--config", metavar="KEY=VALUE", help="With --create: a setting of the topic; repeatable."
        ),
    ] = None,
    json: Json = False,
    env: Env = None,
) -> None:
    """Describe the topics that a file names: partitions, replicas, settings, offsets; or create the missing ones.

    Topics of upsert-kafka tables are created compacted. Without Spark.
    """
    given = TopicCreation(partitions, replication_factor, _settings(settings))
    if create and describe:
        raise DefinitionError("--create and --describe exclude each other: give one of them")
    if not create and given != TopicCreation():
        raise DefinitionError("--partitions, --replication-factor and --config are for --create; add it")
    named = topics_of(file)
    if not named:
        raise DefinitionError(f"{file} names no topic")
    from bridge.kafka.topic_creation import create_topic, found_topics

    screen = Screen()
    created = {name for topic in named if create for name in create_topic(topic, given)}
    found = [one for topic in named for one in found_topics(topic)]
    values = [{**one.as_dict(), **({"created": one.name in created} if create else {})} for one in found]
    rows = {one.name: ("created: " if one.name in created else "") + _line(one) for one in found}
    screen.result(f"topics of {file}", values, json=json, rows=rows)


def topics_of(file: str) -> list[Topic]:
    """Return the topics of a file, those that are written first where one is read, too, each once."""
    if is_job(file):
        job = load_job(file)
        found = [definition.topic for definition in job.publishes]
        found += [] if job.script is None else _topics_of_script(job.script)
    elif is_script(file):
        found = _topics_of_script(load_script(file))
    else:
        found = [config.load(file).topic]
    return list({(t.bootstrap_servers, t.names, t.pattern): t for t in reversed(found)}.values())[::-1]


def _topics_of_script(script: Script) -> list[Topic]:
    from bridge.pipelines.scripts.state import ScriptState

    sent = [definition.topic for definition in ScriptState(script).publishes.values()]
    return [*sent, *(table.topic for table in script.tables if table.topic is not None)]


def _settings(texts: list[str] | None) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts or ()]
    for key, equals, _ in pairs:
        if not (key and equals):
            raise DefinitionError(f"--config {key}: write a setting as KEY=VALUE, e.g. retention.ms=86400000")
    return {key.strip(): value.strip() for key, _, value in pairs}


def _line(found: FoundTopic) -> str:
    if not found.partitions:
        return "missing; --create creates it"
    settings = ", ".join(f"{key}={value}" for key, value in found.settings.items())
    offsets = ", ".join(f"{p.partition}: {p.earliest} to {p.latest}" for p in found.partitions)
    return (
        f"{len(found.partitions)} partitions, {found.replication} replicas; {settings}\n"
        f"offsets of partitions {offsets}"
    )


app = typer.Typer(no_args_is_help=True, help="List and abort the transactions of an exactly-once publish.")


@app.command("list")
def show(file: File, json: Json = False, master: Master = None, env: Env = None, conf: Conf = None) -> None:
    """List transactions whose id is sink.transactional-id-prefix, or starts with it and '-'. Changes nothing.

    An Ongoing transaction blocks read_committed consumers at its first record until it is committed
    or aborted, or its timeout expires.
    """
    screen, definition = Screen(quiet=json), config.load(file)
    from bridge.kafka.admin_transactions import list_transactions

    with process.session(screen, definition, master, conf) as spark:
        transactions = list_transactions(spark, definition.topic)
    rows = {t.id: _transaction_line(t) for t in transactions} or {"": "none"}
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
    env: Env = None,
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
    rows = {t.id: f"aborted: {_transaction_line(t)}" for t in ended}
    rows |= {
        t.id: f"not aborted, since the bridge creates no such id; --all aborts it, too: {_transaction_line(t)}"
        for t in left
    }
    result = {"ended": [asdict(t) for t in ended], "left": [asdict(t) for t in left]}
    screen.result(_title(definition), result, rows=rows or {"": "no open transaction"}, json=json)


def _title(definition: Definition) -> str:
    return f"transactions of {definition.topic.sink.transactional_id_prefix}"


def _transaction_line(transaction: Transaction) -> str:
    t = transaction
    age = "" if t.seconds is None else f" for {duration(t.seconds)} (timeout {duration(t.timeout_seconds)})"
    wrote = f", {' '.join(t.partitions)}" if t.partitions else ""
    return f"{t.state}{age}, producer {t.producer_id} epoch {t.epoch}{wrote}"

"""The verbs that look after a pipeline: how far it is, whether both sides are equal, what was kept aside."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from bridge import config, process
from bridge.arguments import Conf, File, Json, Master, Quiet
from bridge.console import Screen
from bridge.errors import DefinitionError, DifferenceError

__all__ = ["maintain", "replay", "status", "verify"]


def verify(
    file: File,
    direction: Annotated[
        str | None, typer.Option(help="ingest or publish; default: the one with progress.")
    ] = None,
    quiet: Quiet = False,
    json: Json = False,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Prove that topic and table hold the same rows. Exits 4 when they do not."""
    if direction not in (None, "ingest", "publish"):
        raise DefinitionError(f"--direction {direction}: legal values are ingest, publish")
    screen, definition = Screen(quiet=quiet or json), config.load(file)
    from bridge.pipelines.verify import verify as run

    with process.session(screen, definition, master, conf) as spark:
        proof = run(spark, definition, direction=direction)
    found = proof.comparison
    rows = {
        "topic": f"{found.topic_rows:,} rows  checksum {found.topic_checksum}",
        "table": f"{found.table_rows:,} rows  checksum {found.table_checksum}  version {proof.version}",
        "result": "equal" if proof.equal else "DIFFERENT",
    }
    whole = {**asdict(proof), "offsets": proof.offsets.to_json(), "equal": proof.equal}
    title = f"{proof.direction} {definition.name}: fold(topic) == table?"
    screen.result(title, whole, rows=rows, json=json)
    if not proof.equal:
        raise DifferenceError(
            f"{found.missing_in_table:,} keys missing in the table, {found.missing_in_topic:,} missing in the topic, "
            f"{found.different:,} with different rows, {found.duplicate_keys:,} more than once; "
            f"for example {', '.join(found.examples)}"
        )


def replay(
    file: File,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Also records older than delete.retention.ms: deletes may be forgotten."
        ),
    ] = False,
    json: Json = False,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Apply records that `bad-records: quarantine` kept aside and that can be read now.

    Correct their key and value in the quarantine table, or the DDL, then run this. A record never overtakes a newer one
    of its key. What still cannot be read stays aside.
    """
    screen, definition = Screen(quiet=json), config.load(file)
    from bridge.pipelines.replay import replay as run

    with process.session(screen, definition, master, conf) as spark:
        found = run(spark, definition, force=force).as_dict()
    screen.result(f"replay of {definition.name}", found, json=json)


def status(file: File, json: Json = False, master: Master = None, conf: Conf = None) -> None:
    """Show how far a pipeline has got and how much is left. Moves nothing."""
    screen, definition = Screen(quiet=json), config.load(file)
    from bridge.pipelines.status import status as run

    with process.session(screen, definition, master, conf) as spark:
        found = run(spark, definition).as_dict()
    screen.result(f"status of {definition.name}", found, json=json)


def maintain(
    file: File,
    forget_consumer: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="A publish that will not come back: VACUUM no longer waits for it."
        ),
    ] = None,
    json: Json = False,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """OPTIMIZE and VACUUM the table, but keep what a publish still needs.

    What is done says the section `maintenance`, by which an ingest does the same between its batches; without one it is
    both, and files are kept as long as the table's delta.deletedFileRetentionDuration says.
    """
    screen, definition = Screen(quiet=json), config.load(file)
    from bridge.pipelines.maintain import maintain as run

    with process.session(screen, definition, master, conf) as spark:
        found = run(spark, definition, forget=forget_consumer).as_dict()
    screen.result(f"maintenance of {definition.delta}", found, json=json)

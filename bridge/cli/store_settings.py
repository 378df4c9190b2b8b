"""Gives the settings of Spark to what reads files on object stores before Spark is there."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from bridge.errors import DefinitionError
from bridge.store_options import given_settings


def conf_settings(conf: Sequence[str] | None) -> dict[str, str]:
    """Returns the settings of --conf. Raises DefinitionError for one that is not key=value."""
    settings = {}
    for pair in conf or []:
        key, equals, value = pair.partition("=")
        if not equals:
            raise DefinitionError(f"--conf {pair}: expected key=value")
        settings[key] = value
    return settings


def use_submitted(context: typer.Context) -> None:
    """For the command that runs, reads files on object stores with the settings that spark-submit was given."""
    context.with_resource(given_settings(_submitted))


def use_conf(context: typer.Context, conf: list[str] | None) -> list[str] | None:
    """The same with the settings of --conf, which win."""
    context.with_resource(given_settings(lambda: {**_submitted(), **conf_settings(conf)}))
    return conf


def _submitted() -> dict[str, str]:
    from bridge.session import submitted_settings

    return submitted_settings()

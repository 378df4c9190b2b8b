"""Arguments and options that several verbs share."""

from __future__ import annotations

from typing import Annotated

import typer

from bridge.cli.process import use_conf, use_values
from bridge.console import LOG_FORMATS, log_as
from bridge.errors import DefinitionError, OptionError
from bridge.metrics.prometheus import check_installed, parsed
from bridge.metrics.target_urls import without_login
from bridge.options.kinds import duration_ms


def _target(text: str | None) -> str | None:
    if text is not None:
        try:
            parsed(text)
        except ValueError as error:
            raise DefinitionError(f"--metrics {without_login(text)}: {error}") from None
        check_installed("--metrics")
    return text


def refuse_address(metrics: str | None, command: str, otherwise: str = "") -> None:
    """Raises DefinitionError where `--metrics` of a command that ends when it has a result is an address, at which
    nobody could ask for it; `otherwise` is another way out."""
    if metrics is not None and not isinstance(parsed(metrics), str):
        raise DefinitionError(
            f"--metrics {metrics}: {command} ends as soon as it has a result, so that nobody could scrape it there; "
            f"name a file (.prom) or the URL of a push gateway{otherwise}"
        )


def _log_as(format: str) -> str:
    if format not in LOG_FORMATS:
        raise DefinitionError(f"--log-format {format}: legal values are {', '.join(LOG_FORMATS)}")
    log_as(format)
    return format


File = Annotated[
    str,
    typer.Argument(help="The pipeline file (YAML), e.g. conf/orders.yaml or s3a://bucket/conf/orders.yaml."),
]
Files = Annotated[
    list[str],
    typer.Argument(
        help="The pipeline file (YAML), e.g. conf/orders.yaml or s3a://bucket/conf/orders.yaml; or several files, "
        "each with `trigger: available-now`."
    ),
]
Every = Annotated[
    str | None,
    typer.Option(
        metavar="INTERVAL",
        help="Run the files again and again until Ctrl-C, with this pause when nothing is new: 10s.",
    ),
]
Parallel = Annotated[
    int, typer.Option(min=1, help="Of several files: how many run at the same time, in one Spark.")
]
FileOrScript = Annotated[
    str,
    typer.Argument(
        help="The pipeline file (YAML), a script in Flink SQL (.sql), or a job of Flink CDC (YAML)."
    ),
]
ScriptFile = Annotated[
    str,
    typer.Argument(help="The script in Flink SQL, e.g. conf/pageviews.sql, or a job of Flink CDC (YAML)."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only results and errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Metrics = Annotated[
    str | None,
    typer.Option(
        metavar="TARGET",
        callback=_target,
        help="Show metrics to Prometheus: at an address such as 127.0.0.1:9464, in a file (.prom), or through the URL "
        "of a push gateway; goes before the file's `run.metrics`.",
    ),
]
LogFormat = Annotated[
    str,
    typer.Option(
        "--log-format",
        metavar="FORMAT",
        callback=_log_as,
        envvar="BRIDGE_LOG_FORMAT",
        help="text or json: each line as a JSON object, batches as events (docs/metrics.md).",
    ),
]
Env = Annotated[
    list[str] | None,
    typer.Option(
        "--env",
        metavar="NAME=VALUE",
        callback=use_values,
        help="Value of ${env:NAME} in the file, in place of an environment variable; repeatable.",
    ),
]
Master = Annotated[str | None, typer.Option(help="Spark master; default: SPARK_MASTER, else local[*].")]
Conf = Annotated[
    list[str] | None,
    typer.Option("--conf", callback=use_conf, help="Spark setting as key=value; repeatable."),
]


def seconds(option: str, text: str | None) -> float | None:
    """Returns an interval in seconds; None for None. Raises DefinitionError with the name of the option."""
    if text is None:
        return None
    try:
        return duration_ms(text) / 1000
    except (OptionError, ValueError) as error:
        raise DefinitionError(f"{option} {text}: {error}; write an interval like 10s or 1 min") from None

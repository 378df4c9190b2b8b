"""Arguments and options that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["Conf", "File", "FileOrScript", "Json", "Master", "Quiet", "ScriptFile"]

File = Annotated[Path, typer.Argument(help="The pipeline file (YAML), e.g. conf/orders.yaml.")]
FileOrScript = Annotated[
    Path, typer.Argument(help="The pipeline file (YAML), or a script in Flink SQL (.sql).")
]
ScriptFile = Annotated[Path, typer.Argument(help="The script in Flink SQL, e.g. conf/pageviews.sql.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only results and errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Master = Annotated[str | None, typer.Option(help="Spark master; default: SPARK_MASTER, else local[*].")]
Conf = Annotated[list[str] | None, typer.Option("--conf", help="Spark setting as key=value; repeatable.")]

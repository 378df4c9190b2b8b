"""Command lines in the documentation, checked against the commands that there are."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
from importlib.util import find_spec
from typing import Any

import typer

from bridge.cli.app import app
from tests.docs.pages import ROOT

_APP = typer.main.get_group(app)
COMMANDS: dict[str, Any] = {
    f"{name} {sub}" if sub else name: command
    for name, group in _APP.commands.items()
    for sub, command in getattr(group, "commands", {"": group}).items()
}
"""Each command by its words: `verify`, `txn list`."""

OPTIONS = {option for command in COMMANDS.values() for p in command.params for option in p.opts} | {"--help"}

_OWN_OPTIONS = {option for p in _APP.params for option in p.opts}
_TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
_SHELL = {"cd", "export", "source"}
_JOB = re.compile(r"(local:///[\w/]+/)?jobs/\w+\.py")
_SHIPPED = re.compile(r"(conf|jobs|expectations|benchmarks)/[\w./-]+")


def check_line(line: str) -> None:
    """Fail for a command line that names what is not there: a command, an option, a make target, a file."""
    words = shlex.split(re.sub(r"(^|\s)#.*", "", line))  # in `archive.tar.gz#name` no comment begins
    for word in words:
        assert not _SHIPPED.fullmatch(word) or (ROOT / word).is_file(), f"{word} is not in the repository"
    while words and re.fullmatch("[A-Z]+=.*", words[0]):  # a variable of this command
        del words[0]
    if not words or words[0] in _SHELL:
        return
    program, *arguments = words
    if program.removeprefix(".venv/bin/") == "bridge":
        check_bridge(arguments)
    elif program.removeprefix(".venv/bin/") == "python":
        _check_python(arguments)
    elif program.removeprefix(".venv/bin/") == "pytest":
        _check_pytest(arguments)
    elif program == "make":
        targets = {word for word in arguments if "=" not in word}
        assert targets and targets <= _TARGETS, f"make has no target {targets - _TARGETS}"
    elif program == "docker":
        assert arguments[0] == "build" and (ROOT / arguments[-1] / "Dockerfile").is_file(), line
    elif program == "spark-submit":
        script = next(n for n, word in enumerate(arguments) if _JOB.fullmatch(word))
        job = arguments[script].partition("jobs/")[2]
        assert (ROOT / "jobs" / job).is_file(), f"there is no job {job}"
        verb = job.removesuffix(".py")
        check_bridge([*([] if verb == "run" else [verb]), *arguments[script + 1 :]])
    else:
        raise AssertionError(f"`{program}` is no command that this test knows: {line}")


def check_bridge(arguments: list[str]) -> None:
    """Fail unless `bridge` takes these arguments. Nothing is run."""
    arguments = arguments[: arguments.index(">")] if ">" in arguments else arguments
    if arguments and set(arguments) <= _OWN_OPTIONS:
        return
    count = 2 if " ".join(arguments[:2]) in COMMANDS else 1
    verb, rest = " ".join(arguments[:count]), arguments[count:]
    assert verb in COMMANDS, f"bridge has no command `{verb}`"
    COMMANDS[verb].make_context(verb, rest)  # raises what a wrong command line ends with


def _check_python(arguments: list[str]) -> None:
    kind, text = arguments[:2]
    if kind == "-m":
        assert find_spec(text), f"there is no module {text}"
        return
    assert kind == "-c", f"python {kind} is not checked"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            module = importlib.import_module(str(node.module))
            assert all(hasattr(module, alias.name) for alias in node.names), f"not in {node.module}: {text}"


def _check_pytest(arguments: list[str]) -> None:
    """Fail unless the file or folder is there, and `-k` names a test in it, `-m` a marker."""
    path = ROOT / arguments[0]
    assert path.exists(), f"{arguments[0]} is not in the repository"
    given = dict(zip(arguments[1::2], arguments[2::2], strict=True))
    assert given.keys() <= {"-k", "-m"}, f"pytest {arguments} is not checked"
    if word := given.get("-k"):
        assert re.search(rf"^def test_\w*{word}", path.read_text("utf-8"), re.MULTILINE), word
    if marker := given.get("-m"):
        assert re.search(rf'^    "{marker}: ', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE), (
            marker
        )

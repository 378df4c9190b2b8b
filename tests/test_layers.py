"""The structure of the repository: imports, sizes of files, tests that mirror modules, what the package exports."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import bridge

ROOT = Path(__file__).parents[1]
HEAVY = ("pyspark", "delta", "confluent_kafka", "great_expectations", "pandas", "pyarrow")
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))
SOURCES = sorted(p for folder in ("bridge", "jobs", "tests") for p in (ROOT / folder).rglob("*.py"))


def test_imports_flow_down_only() -> None:
    """The contracts in pyproject.toml, as `make imports` checks them."""
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [lint, "--no-cache"], cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "module", ["bridge", "bridge.cli.app", "bridge.config", "bridge.rows", "bridge.jars"]
)
def test_starting_up_loads_neither_spark_nor_kafka(module: str) -> None:
    """`bridge --help` and `bridge validate` answer at once."""
    program = f"import sys, {module}; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_file_grows_too_big(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 500


def test_the_front_door_shows_sorted_names_that_are_there() -> None:
    assert bridge.__all__ == sorted(bridge.__all__)
    assert all(hasattr(bridge, name) for name in bridge.__all__)


@pytest.mark.parametrize(
    "path",
    [p for p in SOURCES if p.is_relative_to(ROOT / "bridge")],
    ids=lambda p: str(p.relative_to(ROOT)),
)
def test_every_module_says_what_it_is_for(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree) or not tree.body


OTHER_SUBJECTS = {"benchmarks", "cases", "cluster", "docs", "faults", "scenarios", "upgrade"}
"""Folders of tests whose subject is not a module of bridge/."""
SEVERAL_MODULES = {
    "peek/test_peek.py": "the whole package with a broker",
    "pipelines/faults/test_broker_stopped.py": "ingest and publish while no broker answers",
    "pipelines/faults/test_orphaned_processes.py": "processes of runs whose driver or JVM has died",
    "pipelines/faults/test_watchdog.py": "a run that hangs in native code",
    "test_conf.py": "the files of conf/ and expectations/",
    "test_databricks.py": "the files of conf/databricks/",
    "test_glossary.py": "GLOSSARY.md",
    "test_jobs.py": "the scripts of jobs/",
    "test_layers.py": "the structure of the repository",
    "test_readme.py": "README.md",
    "test_slow_list.py": "slow_tests.txt",
    "test_threads.py": "every thread and pool of bridge/",
}
"""Test modules that mirror no module of bridge/, and why."""


@pytest.mark.parametrize("path", TESTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_tests_mirror_modules(path: Path) -> None:
    """tests/a/b/test_<module>[_suffix].py tests bridge/a/b/<module>.py or the package bridge/a/b/<module>/."""
    relative = path.relative_to(ROOT / "tests")
    if relative.parts[0] in OTHER_SUBJECTS or relative.as_posix() in SEVERAL_MODULES:
        return
    assert subject(relative), f"{relative} names no module of bridge/: rename it to test_<module>[_suffix].py"


def test_exceptions_from_mirroring_are_needed() -> None:
    relative = {path.relative_to(ROOT / "tests").as_posix() for path in TESTS}
    assert set(SEVERAL_MODULES) <= relative
    assert [name for name in SEVERAL_MODULES if subject(Path(name))] == []


def subject(test: Path) -> Path | None:
    """Returns the module or package that the name of a test module gives; None if there is none."""
    folder = ROOT / "bridge" / test.parent
    parts = test.stem.removeprefix("test_").split("_")
    for end in range(len(parts), 0, -1):
        module = folder / "_".join(parts[:end])
        if module.with_suffix(".py").is_file() or (module / "__init__.py").is_file():
            return module
    return None


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_module_uses_private_names_of_another(path: Path) -> None:
    """A name without an underscore is public: no module needs to list its names again (ADR 077)."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert private_names(tree) == set()


def test_private_names_are_recognized() -> None:
    program = """
from bridge import jars
from bridge.session import _imported, build_session
jars._accessed
monkeypatch.setattr(jars, "_patched", 1)
monkeypatch.setattr("bridge.session._patched_by_name", 1)
jars.public, build_session.__doc__, self._own
"""
    assert private_names(ast.parse(program)) == {
        "bridge.jars._accessed",
        "bridge.jars._patched",
        "bridge.session._imported",
        "bridge.session._patched_by_name",
    }


def private_names(tree: ast.Module) -> set[str]:
    """Returns the private names of bridge/ that a module imports, accesses as attributes of imports, or patches."""
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    names: dict[str, str] = {}
    for statement in imports:
        origin = statement.module or "" if isinstance(statement, ast.ImportFrom) else ""
        for alias in statement.names:
            full = f"{origin}.{alias.name}" if origin else alias.name
            if full.split(".")[0] == "bridge":
                names[alias.asname or alias.name] = full
    private = {full for full in names.values() if is_private(full.rpartition(".")[2])}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr) and ast.unparse(node.value) in names:
            private.add(f"{names[ast.unparse(node.value)]}.{node.attr}")
        elif (
            isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("setattr", "patch")) and node.args
        ):
            private |= patched(node, names)
    return private


def patched(call: ast.Call, names: dict[str, str]) -> set[str]:
    """Returns the private name of bridge/ that `setattr("bridge.x._y", ...)` or `setattr(x, "_y", ...)` replaces."""
    target, *rest = call.args
    if isinstance(target, ast.Constant):
        full = str(target.value)
    elif ast.unparse(target) in names and rest and isinstance(rest[0], ast.Constant):
        full = f"{names[ast.unparse(target)]}.{rest[0].value!s}"
    else:
        return set()
    return {full} if full.startswith("bridge.") and is_private(full.rpartition(".")[2]) else set()


NAMED_TUPLE = {"_asdict", "_fields", "_make", "_replace"}
"""Public names of named tuples."""


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in NAMED_TUPLE

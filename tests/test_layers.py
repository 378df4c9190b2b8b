"""The shape of the house: what imports what, how big a room may be, what the front door shows."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import bridge

ROOT = Path(__file__).parents[1]
HEAVY = ("pyspark", "delta", "confluent_kafka", "great_expectations", "pandas", "pyarrow")
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
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 300


def test_the_front_door_shows_sorted_names_that_are_there() -> None:
    assert bridge.__all__ == sorted(bridge.__all__)
    assert all(hasattr(bridge, name) for name in bridge.__all__)


@pytest.mark.parametrize(
    "path",
    [p for p in SOURCES if p.is_relative_to(ROOT / "bridge")],
    ids=lambda p: str(p.relative_to(ROOT)),
)
def test_every_module_says_what_it_is_for_and_what_it_exports(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    public = [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    ]
    if tree.body:
        assert ast.get_docstring(tree)
    if public:
        assert any(isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "__all__" for n in tree.body)

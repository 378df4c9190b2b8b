"""The registry of formats: complete, and the only place that names them."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import bridge
from bridge.options import FORMATS, Support
from bridge.options.formats import load

ROOT = Path(bridge.__file__).parent
OTHER_MEANINGS = {
    ("options/format_options.py", "json"): "a value of 'avro.encoding'",
    ("peek/avro_reader.py", "json"): "a value of 'avro.encoding'",
    ("console.py", "json"): "a value of --log-format",
    ("pipelines/ingest/once.py", "csv"): "files for --once, which Spark reads",
    ("pipelines/ingest/once.py", "json"): "files for --once, which Spark reads",
    ("cdc_jobs/load.py", "debezium-json"): "what Flink CDC's sink kafka writes by default",
    ("cdc_jobs/sinks.py", "canal-json"): "what Flink CDC's sinks write",
    ("cdc_jobs/sinks.py", "csv"): "what Flink CDC's sinks write",
    ("cdc_jobs/sinks.py", "debezium-json"): "what Flink CDC's sinks write",
    ("cdc_jobs/sinks.py", "json"): "what Flink CDC's sinks write",
}
SOURCES = [
    path
    for path in sorted(ROOT.rglob("*.py"))
    if not path.is_relative_to(ROOT / "formats") and path != ROOT / "options" / "formats.py"
]


@pytest.mark.parametrize("name", [name for name, f in FORMATS.items() if f.support is Support.HONOURED])
def test_every_reference_of_a_format_leads_somewhere(name: str) -> None:
    declared = FORMATS[name]
    assert all(callable(load(r)) for r in (declared.rules, declared.reader, declared.spark))
    assert all(callable(load(r)) for r in (declared.arrow, declared.arrow_changes) if r)


def test_rules_readers_and_arrow_decoders_load_no_spark() -> None:
    references = [r for f in FORMATS.values() for r in (f.rules, f.reader, f.arrow, f.arrow_changes) if r]
    program = (
        "import sys; from bridge.options.formats import load; "
        f"[load(r) for r in {references}]; print('pyspark' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT.parent
    )
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_other_module_names_a_format(path: Path) -> None:
    """Layers ask the declaration. Option values that are spelled alike are listed with their meaning."""
    literals = {
        node.value
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    found = {(str(path.relative_to(ROOT)), name) for name in FORMATS if name in literals}
    assert found - set(OTHER_MEANINGS) == set()

"""Pairs of Spark and Delta that fit, and a list of what is private in them, each with a test on every version."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from bridge import jars, spark_versions
from bridge.errors import BridgeError
from bridge.spark_versions import check_pair, delta_coordinate, has_class, or_public, running_versions
from tests.test_layers import TESTS, subject

pytestmark = pytest.mark.versions
ROOT = Path(__file__).parents[1]
PRIVATE = re.compile(
    r"\._(jvm|jdf|jdt|jo|jsc|jsparkSession|jrdd|jc|gateway|ensure_initialized)\b|checkpoint_file_manager"
    r"|^ *(from|import) py4j|import .*\bSparkContext\b|\.sparkContext\b|\.rdd\b",
    re.MULTILINE,
)


def installed_by(constraints: str) -> tuple[str, str]:
    pins = dict(line.split("==") for line in (ROOT / constraints).read_text().splitlines() if "==" in line)
    return pins["pyspark"], pins["delta-spark"]


def test_the_tests_run_on_a_tested_pair() -> None:
    files = ("constraints-spark4.1.txt", "constraints.txt")
    assert tuple(installed_by(file) for file in files) == spark_versions.TESTED
    assert spark_versions.installed() in spark_versions.TESTED


def test_databricks_own_compute_is_not_taken_for_a_client_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have the package Databricks Connect beside pyspark; `test_session_databricks_connect` has it alone."""
    metadata = tmp_path / "databricks_connect-17.3.0.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: databricks-connect\nVersion: 17.3.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert version("databricks-connect") == "17.3.0" and not spark_versions.is_databricks_connect()


@pytest.mark.parametrize(
    ("spark", "delta"),
    [
        *spark_versions.TESTED,
        ("4.0.7", "4.0.9"),
        ("4.1.0", "4.1.0"),
        ("4.1.2.dev0", "4.2.0"),
        ("4.2.1", "4.4.1"),
    ],
)
def test_a_pair_that_fits_is_accepted(spark: str, delta: str) -> None:
    check_pair(spark, delta)


@pytest.mark.parametrize(
    ("spark", "delta", "message"),
    [
        (
            "4.1.1",
            "4.0.1",
            "delta-spark 4.0.1 does not fit pyspark 4.1.1, which needs Delta 4.1 to 4.3: pip install",
        ),
        (
            "4.0.0",
            "4.3.1",
            "delta-spark 4.3.1 does not fit pyspark 4.0.0, which needs Delta 4.0: pip install",
        ),
        ("4.1.1", "4.4.0", "delta-spark 4.4.0 does not fit pyspark 4.1.1"),
        (
            "3.5.6",
            "3.3.0",
            "pyspark 3.5.6 is installed, and the bridge needs Spark 4.0, 4.1 or 4.2: pip install",
        ),
        ("4.2.0", "4.3.1", "delta-spark 4.3.1 does not fit pyspark 4.2.0, which needs Delta 4.4: pip"),
        ("4.3.0", "4.4.0", "pyspark 4.3.0 is installed"),
    ],
)
def test_a_pair_that_does_not_fit_is_refused_with_the_way_out(spark: str, delta: str, message: str) -> None:
    with pytest.raises(BridgeError) as refused:
        check_pair(spark, delta)
    assert str(refused.value).startswith(message)
    for good_spark, good_delta in spark_versions.TESTED:
        assert f"'pyspark=={good_spark}' 'delta-spark=={good_delta}'" in str(refused.value)


def test_the_ranges_of_the_package_allow_both_pairs_and_nothing_that_is_refused() -> None:
    found = re.findall(
        r'^    "((?:pyspark|delta-spark)[^"]*)",$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE
    )
    ranges = {r.name: r.specifier for r in map(Requirement, found)}
    for spark, delta in spark_versions.TESTED:
        assert spark in ranges["pyspark"] and delta in ranges["delta-spark"]
    for spark, delta in (("4.3.0", "4.5.0"), ("3.5.6", "3.3.0")):
        assert spark not in ranges["pyspark"] and delta not in ranges["delta-spark"]


def test_jars_of_a_pair_that_does_not_fit_are_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.jars.installed", lambda: ("4.1.1", "4.0.1"))
    with pytest.raises(BridgeError, match=r"delta-spark 4\.0\.1 does not fit pyspark 4\.1\.1"):
        jars.spark_coordinates()


def test_delta_names_its_jar_after_spark_since_4_1() -> None:
    assert delta_coordinate("4.0.0", "4.0.1") == "io.delta:delta-spark_2.13:4.0.1"
    assert delta_coordinate("4.1.1", "4.3.1") == "io.delta:delta-spark_4.1_2.13:4.3.1"


def test_spark_is_the_one_that_is_installed(spark: SparkSession) -> None:
    assert spark.version == version("pyspark")


def test_a_jvm_tells_its_versions(spark: SparkSession) -> None:
    assert running_versions(spark._jvm) == (version("pyspark"), "2.13", version("delta-spark"))


def test_classes_are_found_by_name(spark: SparkSession) -> None:
    assert has_class(spark._jvm, "io.delta.sql.DeltaSparkSessionExtension")
    assert not has_class(spark._jvm, "io.delta.sql.NoSuchExtension")


@pytest.mark.parametrize(
    "missing", [AttributeError("_jdf"), Py4JError("no such method"), TypeError("JavaPackage")]
)
def test_what_is_missing_is_replaced_by_the_public_way(missing: Exception) -> None:
    def private() -> str:
        raise missing

    assert or_public(private, lambda: "public") == "public"
    assert or_public(lambda: "private", lambda: "public") == "private"


def test_errors_of_spark_itself_pass(spark: SparkSession) -> None:
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        or_public(lambda: spark.sql("SELECT * FROM nowhere"), lambda: spark.range(1))


def listed() -> set[str]:
    table = re.findall(r"^    ([a-z_.]+) +\S.*$", spark_versions.__doc__ or "", re.MULTILINE)
    return set(table) - {"module"}


def test_every_private_use_is_listed() -> None:
    using = {
        ".".join(path.relative_to(ROOT / "bridge").with_suffix("").parts)
        for path in (ROOT / "bridge").rglob("*.py")
        if PRIVATE.search(path.read_text())
    }
    assert listed() == using - {"spark_versions"}


@pytest.mark.parametrize("module", sorted(listed()))
def test_every_private_use_has_a_test_on_every_version(module: str) -> None:
    place = ROOT / "bridge" / Path(*module.split("."))
    own = [test for test in TESTS if subject(test.relative_to(ROOT / "tests")) == place]
    assert any("mark.versions" in test.read_text() for test in own), (
        f"no test of {module} is marked `versions`"
    )


@pytest.mark.parametrize("missing", ["pyspark", "py4j"])
def test_without_spark_its_extra_is_named(missing: str) -> None:
    """The name of the front door, and the command's exit code."""
    said = "is not installed: pip install 'changelog-bridge[spark]'; on Databricks the compute has it"
    hidden = f"import sys; sys.modules[{missing!r}] = None; "
    shown = run(f"{hidden}import bridge\ntry: bridge.ingest\nexcept bridge.BridgeError as e: print(e)")
    assert shown.stdout.startswith(f"{missing} {said}")
    asked = run(f"{hidden}from bridge.cli.app import main; sys.exit(main(['ingest', 'conf/orders.yaml']))")
    assert asked.returncode == 1
    assert said in " ".join(asked.stderr.replace("│", "").split())


def run(program: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "COLUMNS": "300"}
    return subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environ, capture_output=True, text=True, check=False
    )

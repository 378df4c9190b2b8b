"""Several pipeline files in one command: which are refused, what a failure of one means, and that all are run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bridge.cli import main
from tests.pipelines.world import Make, upsert


def test_all_are_run_and_one_that_fails_is_named(
    make: Make, unique: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    made = [make(folder=f"{number}", partitions=1) for number in range(3)]
    for number, world in enumerate(made):
        world.send([upsert(number, "a")])
        world.definition(f"p{number}")
    files = [str(world.folder / f"p{number}.yaml") for number, world in enumerate(made)]
    bad = Path(files[1])
    bad.write_text(bad.read_text().replace(made[1].topic, unique("missing")))
    assert main(["ingest", *files, "--parallel", "2"]) == 1
    out, err = capsys.readouterr()
    assert [row[0] for world in (made[0], made[2]) for row in world.rows()] == [0, 2]
    assert "failed p1:" in err and "1 of 3 pipelines failed: p1" in err
    shown = [line.split() for line in out.splitlines()]
    assert ["batches", "2"] in shown and ["failed", "1", "of", "3"] in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.yaml", "a.yaml"], "its name is 'orders', as that of a.yaml; progress is stored under the name"),
        (["b.yaml", "c.yaml"], "b.yaml: run.trigger is an interval, so its run would not end"),
        (["b.yaml", "c.yaml"], "c.yaml: the pipeline file cannot be read: No such file"),
        (["a.yaml", "--parallel", "2"], "--parallel 2 has no effect on one file"),
        (["a.yaml", "--every", "often"], "--every often:"),
        (["a.yaml", "c.yaml", "--explain"], "--explain is about one file"),
    ],
)
def test_what_is_refused_before_spark_starts(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    text = (Path(__file__).parents[2] / "conf" / "orders.yaml").read_text()
    text = text[: text.index("quality:")]
    (tmp_path / "a.yaml").write_text(text)
    (tmp_path / "b.yaml").write_text(text.replace("trigger: available-now", "trigger: 1 s"))
    monkeypatch.chdir(tmp_path)
    assert main(["ingest", *arguments]) == 2
    assert message in " ".join(capsys.readouterr().err.split())

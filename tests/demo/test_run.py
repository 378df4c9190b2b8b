"""The demo empties a folder of its own, and none of others."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.demo.run import emptied
from bridge.errors import DefinitionError


def test_only_a_folder_of_the_demo_is_emptied(tmp_path: Path) -> None:
    made, others = tmp_path / "demo", tmp_path / "lake"
    emptied(made)
    (made / "lake").mkdir()
    emptied(made)
    assert not (made / "lake").exists()
    others.mkdir()
    emptied(others)
    (others / ".bridge-demo").unlink()
    (others / "orders").mkdir()
    with pytest.raises(DefinitionError, match=r"lake: it holds what no demo has made \(there is no file"):
        emptied(others)
    assert (others / "orders").is_dir()

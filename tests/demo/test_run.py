"""The demo empties only folders that a demo created."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.demo.run import prepare_folder
from bridge.errors import DefinitionError


def test_only_a_folder_of_the_demo_is_emptied(tmp_path: Path) -> None:
    made, others = tmp_path / "demo", tmp_path / "lake"
    prepare_folder(made)
    (made / "lake").mkdir()
    prepare_folder(made)
    assert not (made / "lake").exists()
    others.mkdir()
    prepare_folder(others)
    (others / ".bridge-demo").unlink()
    (others / "orders").mkdir()
    with pytest.raises(
        DefinitionError, match=r"lake: the demo deletes everything in its folder, .* \(it has no file"
    ):
        prepare_folder(others)
    assert (others / "orders").is_dir()

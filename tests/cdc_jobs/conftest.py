"""A folder with two Delta tables, which the tests of this package only read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cdc_jobs.jobs import write_shop


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop")
    write_shop(folder)
    return folder

"""Names of the files of a Delta log."""

from __future__ import annotations

import pytest

from bridge.log_layout import checksum_version, commit_file, log_folder, version_of


def test_where_a_commit_is() -> None:
    assert (
        f"{log_folder('file:/lake/t/')}/{commit_file(7)}"
        == "file:/lake/t/_delta_log/00000000000000000007.json"
    )


@pytest.mark.parametrize(
    ("name", "version", "checksum"),
    [
        ("00000000000000000007.json", 7, None),
        ("00000000000000000010.checkpoint.parquet", 10, None),
        ("00000000000000000010.checkpoint.0000000001.0000000002.parquet", 10, None),
        ("00000000000000000010.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json", 10, None),
        ("00000000000000000007.crc", None, 7),
        (".00000000000000000007.json.crc", None, 7),
        ("_last_checkpoint", None, None),
        ("._last_checkpoint.crc", None, None),
        ("7.json", None, None),
    ],
)
def test_what_a_file_is(name: str, version: int | None, checksum: int | None) -> None:
    assert (version_of(name), checksum_version(name)) == (version, checksum)

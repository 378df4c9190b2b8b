"""Provides small disks that can be filled: an ext4 file system in a file, mounted on a loop device."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class Disk:
    """A mounted file system of a few megabytes; `folder` is an empty folder on it."""

    def __init__(self, mount: Path) -> None:
        self._filler = mount / "filler"
        self.folder = mount / "folder"
        self.folder.mkdir()

    def fill(self, leave: int = 0) -> None:
        """Fills the disk up to `leave` bytes; can be called again."""
        found = os.statvfs(self.folder)
        left = max(0, found.f_bavail * found.f_frsize - leave)
        with self._filler.open("ab", buffering=0) as out:
            for size in (65_536, 1024):
                while left >= size or not leave:
                    try:
                        left -= out.write(b"x" * size)
                    except OSError:  # the file system needs blocks for the file's metadata, too
                        break

    def free(self) -> None:
        """Frees the space."""
        self._filler.unlink()


@contextmanager
def mounted(folder: Path, megabytes: int) -> Iterator[Disk]:
    """Mounts a small disk at `folder`; skips the test where this is not possible."""
    tool = shutil.which("mkfs.ext4")
    if os.geteuid() != 0 or tool is None:
        pytest.skip("needs root and mkfs.ext4, to mount a small disk")
    image, mount = folder.with_suffix(".img"), folder
    mount.mkdir()
    with image.open("wb") as out:
        out.truncate(megabytes << 20)
    subprocess.run([tool, "-q", "-m", "0", "-O", "^has_journal", image], check=True)
    done = subprocess.run(["mount", "-o", "loop", image, mount], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"loop devices cannot be mounted here: {done.stderr.strip()}")
    try:
        yield Disk(mount)
    finally:
        subprocess.run(["umount", "--lazy", mount], check=True)
        image.unlink()

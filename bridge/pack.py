"""Packs the bridge for the executors of a cluster: `make pack` runs `python -m bridge.pack dist` after the wheel.

bridge.zip          for --py-files: the bridge alone, where the packages that it needs are installed on every node.
                    Spark adds to its workers' path what ends with .zip, .egg or .jar, and no wheel.
environment.tar.gz  for --archives: a virtual environment with the bridge and all that it needs, in the versions that
                    are installed here; unpacked anywhere, its bin/python works. It has neither PySpark, which comes
                    with every Spark, nor an interpreter: bin/python is a link to where the one of this machine lies.
"""

from __future__ import annotations

import shutil
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Iterable, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bridge.errors import BridgeError

_BRIDGE = "changelog-bridge"
_OF_SPARK = ("pyspark", "py4j")


def needed_packages(root: str = f"{_BRIDGE}[spark]", without: Sequence[str] = _OF_SPARK) -> list[str]:
    """Return the names of what `root` needs here, directly or not, in alphabetical order; not itself.

    Raises BridgeError for a package that is not installed.
    """
    found: set[str] = set()
    whole = Requirement(root)
    waiting = [(whole.name, frozenset(whole.extras))]
    seen = set(waiting)
    while waiting:
        name, extras = waiting.pop()
        found.add(name)
        for requirement in map(Requirement, _distribution(name).requires or ()):
            marker, needed = requirement.marker, canonicalize_name(requirement.name)
            applies = marker is None or any(marker.evaluate({"extra": e}) for e in (*extras, ""))
            entry = (needed, frozenset(requirement.extras))
            if applies and needed not in without and entry not in seen:
                seen.add(entry)
                waiting.append(entry)
    return sorted(found - {whole.name})


def pack_bridge(wheel: Path, target: Path) -> Path:
    """Write `target`, a zip for --py-files, from the wheel, and return it; its metadata tells the version."""
    shutil.copyfile(wheel, target)
    return target


def pack_environment(wheel: Path, target: Path, packages: Iterable[str] | None = None) -> Path:
    """Write `target`, a .tar.gz for --archives, with the wheel and the installed `packages`, and return it.

    By default they are the `needed_packages`. Raises BridgeError for one that is not installed as files.
    """
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "environment"
        venv.EnvBuilder(symlinks=True).create(root)
        site = next(root.glob("lib/python*/site-packages"))
        for package in needed_packages() if packages is None else packages:
            _copy(package, site)
        with zipfile.ZipFile(wheel) as bridge:
            bridge.extractall(site)
        with tarfile.open(target, "w:gz", compresslevel=4) as archive:
            for entry in sorted(root.iterdir()):
                archive.add(entry, entry.name)
    return target


def _copy(package: str, site: Path) -> None:
    """Copy the files of an installed package, without scripts, whose first lines name this machine's environment."""
    installed = _distribution(package)
    is_editable = '"editable": true' in (installed.read_text("direct_url.json") or "")
    # A build leaves metadata without a RECORD in the checkout, which Python finds first.
    if installed.files is None or installed.read_text("RECORD") is None or is_editable:
        raise BridgeError(
            f"{package} is not installed as files that can be packed: install it from its wheel"
        )
    for file in installed.files:
        if ".." in file.parts or "__pycache__" in file.parts:
            continue
        copy = site / file
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(str(file.locate()), copy)


def _distribution(package: str) -> Distribution:
    try:
        return distribution(package)
    except PackageNotFoundError:
        raise BridgeError(f"{package} is needed and not installed here: run `make setup`") from None


def main(folder: str) -> int:
    """Pack the wheel in `folder` into files beside it, and print them."""
    (wheel,) = Path(folder).glob("*.whl")
    for made in (
        pack_bridge(wheel, wheel.with_name("bridge.zip")),
        pack_environment(wheel, wheel.with_name("environment.tar.gz")),
    ):
        print(f"{made} {made.stat().st_size / 1e6:,.0f} MB", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

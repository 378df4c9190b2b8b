"""Hooks of the docs site, named in mkdocs.yml."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

_CODE = re.compile(r"(`+[^`\n]+`+)")
_TAG = re.compile(r"<(?=[A-Za-z/])")
_SINCE = re.compile(r"`(git rev-list --count [0-9a-f]{12}\.\.HEAD -- bridge)`")


def on_config(config: Any) -> Any:
    """Replace each nav entry that ends in '/' by the pages of that folder, in the order of their file names."""
    config.nav = _filled(Path(config.docs_dir), config.nav)
    return config


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put the number of commits since a measurement in the place of the command that counts them, where there is a
    repository. Escape what a page written by a program has between angle brackets, such as List<String>: it is no
    HTML."""
    markdown = _SINCE.sub(_counted, markdown)
    if page.file.src_uri != "options.md":
        return markdown
    parts = _CODE.split(markdown)
    return "".join(part if _CODE.fullmatch(part) else _TAG.sub("&lt;", part) for part in parts)


def _counted(command: re.Match[str]) -> str:
    root = Path(__file__).parents[1]
    done = subprocess.run(command[1].split(), cwd=root, capture_output=True, text=True, check=False)
    return command[0] if done.returncode else done.stdout.strip()


def _filled(docs: Path, entry: Any) -> Any:
    if isinstance(entry, list):
        return [_filled(docs, part) for part in entry]
    if isinstance(entry, dict):
        return {title: _filled(docs, part) for title, part in entry.items()}
    if not entry.endswith("/"):
        return entry
    found = sorted((docs / entry).glob("*.md"))
    return [page.relative_to(docs).as_posix() for page in found if not page.stem.endswith("-template")]

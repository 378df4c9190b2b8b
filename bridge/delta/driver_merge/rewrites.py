"""Chooses the data files that a batch rewrites, so that a table of many small batches keeps few files.

A batch adds one file. As in a log-structured merge tree, a file is merged with others once there are eight of its
size or smaller, into one of about eight times that size: a row is rewritten a few times, whatever the number of
batches. A file of which most rows are deleted is rewritten, too. Large files, and those that OPTIMIZE has clustered,
are left to it.
"""

from __future__ import annotations

from collections.abc import Mapping

from bridge.lake.snapshot import Action, live_rows, stats_of

_FANOUT = 8
_LARGE_BYTES = 64 << 20
_LARGE_ROWS = 1 << 20


def files_to_rewrite(files: Mapping[str, Action], marked: Mapping[str, int], new_rows: int) -> list[str]:
    """Choose from `files`, of which a batch marks `marked` more rows, those whose rows go into the new file of a batch
    with `new_rows` rows. Files that keep no row are not among them."""
    left = {name: count for name, add in files.items() if (count := _left(add, marked.get(name, 0)))}
    chosen = [name for name, count in left.items() if 2 * count < int(stats_of(files[name])["numRecords"])]
    rows = new_rows + sum(left.pop(name) for name in chosen)
    while rows:
        similar = [name for name, count in left.items() if count < _next_size(rows)]
        together = rows + sum(left[name] for name in similar)
        if len(similar) + 1 < _FANOUT or together > _LARGE_ROWS:
            break
        chosen += similar
        rows = together
        for name in similar:
            del left[name]
    return chosen


def _left(add: Action, marked: int) -> int:
    """The rows that the file keeps; 0 for one that is not to be rewritten."""
    live = live_rows(add)
    if live is None or add.get("clusteringProvider") or int(add["size"]) > _LARGE_BYTES or live > _LARGE_ROWS:
        return 0
    return live - marked


def _next_size(rows: int) -> int:
    size = 1
    while size <= rows:
        size *= _FANOUT
    return size

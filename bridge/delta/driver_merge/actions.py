"""Writes the files of a batch, and makes the actions of its commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
from pyroaring import BitMap

from bridge.delta.driver_merge.effects import Effects
from bridge.delta.driver_merge.rewrites import files_to_rewrite
from bridge.delta.table_checks import CHANGE_FEED_PROPERTY, is_on
from bridge.lake.commit import mark_rows, refuse_gap, removed
from bridge.lake.data_files import DataFile, open_file
from bridge.lake.new_files import write_change_file, write_parts
from bridge.lake.snapshot import Action, Snapshot
from bridge.lake.statistics import columns_with_statistics
from bridge.lake.store import at_once

if TYPE_CHECKING:
    import pyarrow as pa

_COPIES_AT_ONCE = 2
"""Each has a row group of its file in memory, and the file that it writes."""
ChooseRewrites = Callable[[Mapping[str, Action], Mapping[str, int], int], list[str]]
"""See `rewrites.files_to_rewrite`."""


def row_actions(
    snapshot: Snapshot,
    files: Mapping[str, DataFile],
    effects: Effects,
    schema: pa.Schema,
    *,
    marks: bool,
    choose_rewrites: ChooseRewrites = files_to_rewrite,
) -> list[Action]:
    """Write what changes, and return the actions that change it. Raises ValueError for a log with a gap.

    `files` are those that are open, and have the rows that change: with `marks` vectors mark these rows, else each file
    is written anew.
    """
    properties, store = snapshot.metadata["configuration"], snapshot.store
    if effects.are_none:
        refuse_gap(store, snapshot.version + 1)
        return []
    columns = columns_with_statistics(properties, len(schema))
    counts = {name: positions.size for name, positions in effects.marked.items()}
    new = effects.inserted.num_rows + (effects.after.num_rows if marks else 0)
    merged = choose_rewrites(snapshot.files, counts, new)
    touched = [name for name in effects.marked if name not in merged]
    marked = touched if marks else []
    copied = [] if marks else touched

    def together() -> Iterator[pa.Table]:
        yield effects.inserted
        for name in (*marked, *merged):
            yield effects.after_of(name)
        for file in at_once(lambda name: files.get(name) or open_file(snapshot, name, schema), merged):
            yield from _kept_rows(file, effects)

    def copy(name: str) -> Iterator[pa.Table]:
        yield from _kept_rows(files[name], effects)
        yield effects.after_of(name)

    def new_files() -> list[Action]:
        # Shared by threads: the store, and effects, as Arrow's arrays are immutable. Each copies its own file.
        with ThreadPoolExecutor(_COPIES_AT_ONCE, "copy-files") as pool:
            parts = [together(), *map(copy, copied)]
            adds = pool.map(lambda rows: write_parts(store, rows, schema, columns), parts)
            return [{"add": add} for add in adds if add is not None]

    def changes() -> list[Action]:
        # Readers of the feed take a commit's new files as inserts, unless it has files of the feed.
        wanted = is_on(properties, CHANGE_FEED_PROPERTY) and (effects.marked or merged)
        return [{"cdc": write_change_file(store, effects.by_type)}] if wanted else []

    def no_gap() -> list[Action]:
        refuse_gap(store, snapshot.version + 1)
        return []

    written = at_once(
        lambda write: write(),
        [
            no_gap,
            lambda: mark_rows(
                store, [files[name] for name in marked], {n: effects.marked[n] for n in marked}
            ),
            new_files,
            changes,
        ],
    )
    removes: list[Action] = [{"remove": removed(snapshot.files[name])} for name in (*merged, *copied)]
    return [*removes, *(action for actions in written for action in actions)]


def _kept_rows(file: DataFile, effects: Effects) -> Iterator[pa.Table]:
    """The rows of a file that the batch neither deletes nor updates, by row groups."""
    own = file.for_another_thread()
    vector = file.marked | BitMap(effects.marked.get(file.name, np.empty(0, np.int64)).tolist())
    kept = np.ones(file.rows, np.bool_)
    kept[np.fromiter(vector, np.int64, len(vector))] = False
    for group in range(own.parquet.num_row_groups):
        begin, rows = own.begin_of(group), own.read([group], own.schema.names)
        yield rows.filter(kept[begin : begin + rows.num_rows])

"""Opens tables with delta-rs, which writes their checkpoints and cleans their logs after commits of the bridge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bridge.delta.delta_errors import replaced_error
from bridge.delta.table import Table
from bridge.lake.local_store import LocalStore
from bridge.lake.remote_store import RemoteStore
from bridge.storage import store_for_writing
from bridge.ways import NotThisWay

if TYPE_CHECKING:
    from deltalake import DeltaTable


def open_with_delta_rs(table: Table) -> DeltaTable:
    """Open the table at its newest version. Raises NotThisWay where delta-rs is not installed, or does not
    reach the files as Spark does; TableError when another table has replaced this one."""
    try:
        from deltalake import DeltaTable
    except ImportError:
        raise NotThisWay("the package deltalake is not installed") from None
    store = store_for_writing(table.spark, table.location)
    target = DeltaTable(store.folder) if isinstance(store, LocalStore) else _opened(DeltaTable, store)
    if str(target.metadata().id) != table.id:
        raise replaced_error(table)
    return target


def _opened(open_table: type[DeltaTable], store: RemoteStore) -> DeltaTable:
    try:
        return open_table(store.location, storage_options=dict(store.options))
    except OSError as failed:
        # Its text may have the address of a login's server, or a request with a token.
        raise NotThisWay(
            "delta-rs cannot open the table on S3: it finds no credentials, or the store does not answer it"
        ) from failed

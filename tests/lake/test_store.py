"""One contract for the files of a table on a local disk and in an object store."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.bridge_folders import is_scratch
from bridge.lake import remote_store
from bridge.lake.local_store import LocalStore
from bridge.lake.remote_store import RemoteStore, joined
from bridge.lake.store import Store, at_once
from bridge.ways import NotThisWay
from tests.lossy_proxy import LossyProxy
from tests.object_store import BUCKET, ObjectStore, only_on_s3


@pytest.fixture(params=["a folder", "a bucket"])
def store(
    request: pytest.FixtureRequest, tmp_path: Path, object_store: ObjectStore, unique: Callable[[str], str]
) -> Store:
    if request.param == "a folder":
        return LocalStore(str(tmp_path / "with blank"))
    return RemoteStore(f"{object_store.root}/{unique('store')}/with blank", object_store.delta_rs_options())


def test_files_are_written_read_listed_and_deleted(store: Store) -> None:
    store.create("data/a b#%20ü", b"0123456789")
    assert store.read("data/a b#%20ü") == b"0123456789"
    assert store.range("data/a b#%20ü", 2, 5) == b"234"
    found = store.head("data/a b#%20ü")
    assert found is not None and found.size == 10 and found.modified > 1_700_000_000
    for name in ("1", "3", "2", "below/4"):
        store.create(f"log/{name}", name.encode())
    assert [name for name in store.names("log") if name != "below"] == ["1", "2", "3"]
    assert [name for name in store.names("log", after="1") if name != "below"] == ["2", "3"]
    assert store.names("nowhere") == [] and store.head("nowhere") is None
    store.delete("log/1")
    store.delete("log/1")
    assert store.head("log/1") is None
    with pytest.raises(FileNotFoundError):
        store.read("log/1")
    with pytest.raises(FileNotFoundError):
        store.range("log/1", 0, 1)


def test_of_several_writers_one_creates_a_file(store: Store) -> None:
    won = at_once(lambda n: store.put_if_absent("log/1.json", f"writer {n}".encode()), range(8))
    assert sorted(won) == [False] * 7 + [True]
    assert store.read("log/1.json") == f"writer {won.index(True)}".encode()
    first = store.head("log/1.json")
    store.delete("log/1.json")
    assert store.put_if_absent("log/1.json", b"anew")
    again = store.head("log/1.json")
    assert first and again and first.stamp != again.stamp


def test_a_scratch_file_that_is_gone_each_time_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(scratch: Path, _: Path) -> None:
        scratch.unlink()
        raise FileNotFoundError(2, "No such file or directory", str(scratch))

    monkeypatch.setattr("bridge.lake.local_store.os.link", link)
    with pytest.raises(FileNotFoundError, match="file"):
        LocalStore(str(tmp_path)).put_if_absent("file", b"")
    assert list(tmp_path.iterdir()) == []


def test_a_writer_whose_scratch_file_a_beginning_run_deletes_writes_again(tmp_path: Path) -> None:
    store, ended = LocalStore(str(tmp_path)), threading.Event()

    def delete_scratch_files() -> None:
        while not ended.is_set():
            for name in store.names("log"):
                if is_scratch(name):
                    store.delete(f"log/{name}")

    sweeper = threading.Thread(target=delete_scratch_files)
    sweeper.start()
    try:
        for turn in range(50):
            won = at_once(lambda n, turn=turn: store.put_if_absent(f"log/{turn}", f"{n}".encode()), range(2))  # type: ignore[misc]
            assert sorted(won) == [False, True]
            assert store.read(f"log/{turn}") == f"{won.index(True)}".encode()
    finally:
        ended.set()
        sweeper.join()


@pytest.mark.parametrize("seconds", [0.5, pytest.param(60, marks=pytest.mark.slow)])
def test_threads_share_a_store_and_a_file(store: Store, seconds: float) -> None:
    """Each opens the file once more; what one of them brings, others may read meanwhile."""
    table, written = pa.table({"id": range(40_000)}), pa.BufferOutputStream()
    pq.write_table(table, written, row_group_size=5_000)
    store.create("f.parquet", written.getvalue())
    source, end, turn = store.open("f.parquet", written.getvalue().size), time.monotonic() + seconds, 0

    def work(n: int) -> bool:
        won = store.put_if_absent(f"log/{turn}-{n % 4}", f"{n}".encode())
        source.fetch([(n * 100, n * 100 + 50)])
        group = pq.ParquetFile(source.file(), pre_buffer=False).read_row_group(n % 8)
        assert group.equals(table.slice(n % 8 * 5_000, 5_000))
        assert int(store.read(f"log/{turn}-{n % 4}")) % 4 == n % 4
        return won

    while time.monotonic() < end:
        assert sum(at_once(work, range(16))) == 4
        turn += 1
    assert turn


@pytest.mark.parametrize("rows", [10, 400_000])
def test_parquet_is_read_in_parts(store: Store, rows: int) -> None:
    table = pa.table({"id": range(rows), "v": [f"{n * 7919}" for n in range(rows)]})
    written = pa.BufferOutputStream()
    pq.write_table(table, written, row_group_size=100_000)
    store.create("f.parquet", written.getvalue())
    if isinstance(store, RemoteStore):  # as another process sees it
        remote_store.kept.forget(store, "f.parquet")
    source = store.open("f.parquet", written.getvalue().size)
    assert (
        pq.ParquetFile(source.file(), pre_buffer=False)
        .read_row_group(0, ["id"])
        .equals(table.select(["id"]).slice(0, 100_000))
    )
    source.fetch([(0, 4), (4, 100)])
    assert source.file().read(4) == b"PAR1"
    assert pq.ParquetFile(source.file(), pre_buffer=False).read().equals(table)


def test_what_was_written_or_read_last_is_kept(
    object_store: ObjectStore, unique: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small files, the ends of large ones, columns, vectors: a batch looks at the same ones again."""
    only_on_s3(object_store)  # the proxy stands before it
    monkeypatch.setattr(remote_store, "KEPT_BYTES", 24 << 20)
    table, written = pa.table({"id": range(400_000), "v": range(400_000)}), pa.BufferOutputStream()
    pq.write_table(table, written, row_group_size=100_000)
    with LossyProxy("127.0.0.1", object_store.port) as proxy:
        options = object_store.delta_rs_options() | {"aws_endpoint": proxy.url}
        store = RemoteStore(f"{object_store.root}/{unique('store')}", options)

        def requests(name: str, columns: list[str] | None = None) -> int:
            proxy.requests.clear()
            size = {"small": 4, "large": written.getvalue().size}[name]
            file = store.open(name, size).file()
            if name == "large":
                found = pq.ParquetFile(file, pre_buffer=False).read_row_group(1, columns)
                assert found.equals(table.slice(100_000, 100_000).select(columns or []))
            else:
                assert file.read() == b"1234" and store.range(name, 1, 3) == b"23"
            return len(proxy.requests)

        def all_of_them() -> tuple[int, ...]:
            return (
                requests("small"),
                requests("large", []),
                requests("large", ["id"]),
                requests("large", ["v"]),
            )

        store.create("small", b"1234")
        store.create("large", written.getvalue())
        assert all_of_them() == (0, 0, 1, 1)
        assert all_of_them() == (0, 0, 0, 0)
        for other in map(str, range(40)):
            store.create(other, bytes(1 << 20))
        assert all_of_them() == (1, 1, 1, 1), "too much was written since"
        assert all_of_them() == (0, 0, 0, 0)
        store.create("vectors", bytes(2 << 20) + b"vector" + bytes(2 << 20))
        proxy.requests.clear()
        at = (2 << 20, (2 << 20) + 6)
        assert [store.range("vectors", *at) for _ in range(3)] == [b"vector"] * 3
        assert len(proxy.requests) == 1
        of_task = pickle.loads(pickle.dumps(store))
        of_task.create("of a task", b"1")
        assert (of_task.range("of a task", 0, 1), of_task.range("of a task", 0, 1)) == (b"1", b"1")
        assert len(proxy.requests) == 4, "a task keeps nothing"
        store.replace("small", b"5678")
        assert store.open("small", 4).file().read() == b"5678"
        store.delete("small")
        with pytest.raises(FileNotFoundError):
            store.open("small", 4).file().read()


def test_ranges_that_meet_are_one_request() -> None:
    assert joined([(5, 9), (0, 5), (20, 30), (22, 25), (9, 10)]) == [(0, 10), (20, 30)]
    assert joined([]) == []


def test_a_task_gets_it(store: Store) -> None:
    store.create("f", b"x")
    assert pickle.loads(pickle.dumps(store)).read("f") == b"x"


def test_a_store_that_does_not_answer_shows_no_secret(object_store: ObjectStore) -> None:
    options = {
        **object_store.delta_rs_options(),
        "aws_secret_access_key": "hidden",
        "aws_endpoint": "http://127.0.0.1:1",
    }
    store = RemoteStore(f"s3a://{BUCKET}/t", options)
    assert "hidden" not in repr(store)
    with pytest.raises(NotThisWay) as failed:
        store.read("f")
    assert str(failed.value).startswith(
        f"s3a://{BUCKET}/t does not give 'f' to the driver or takes it from it ("
    )
    assert "127.0.0.1" not in str(failed.value)

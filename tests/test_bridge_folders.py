"""Names of the bridge's own files do not change: a newer bridge must find what an older one wrote."""

from __future__ import annotations

from bridge import bridge_folders as folders


def test_names_beside_and_inside_a_table() -> None:
    assert (folders.QUARANTINE_SUFFIX, folders.RESULTS_SUFFIX) == ("_quarantine", "_quality")
    assert folders.consumers_folder("s3a://lake/orders/") == "s3a://lake/orders/_bridge/consumers"
    assert folders.consumer_file("p.1") == "p.1.json"
    names = ("p.1.json", ".p.1.json.ab12.tmp", ".p.1.json.crc", "readme.txt")
    assert [folders.consumer_of(name) for name in names] == ["p.1", None, None, None]


def test_names_in_the_checkpoint() -> None:
    assert folders.lease_file("/c/", "ingest") == "/c/ingest.lease.json"
    assert folders.claim_file(folders.lease_name("publish"), "ab12", 0) == "publish.lease.ab12.0.claim"
    assert folders.state_folder(f"{folders.runs_folder('/c', 'ingest')}/run1") == "/c/ingest/run1/state"
    assert folders.publish_log_folder("/c") == "/c/publish"
    assert folders.PARTITION_COUNTS == "publish.partitions.json"
    assert folders.consumers_of("7-a") == "consumers/7-a"
    assert folders.publish_log_file(7) == "00000000000000000007.json"
    names = ("00000000000000000007.json", ".00000000000000000007.json.crc", "7.json")
    assert [folders.publish_log_batch(name) for name in names] == [7, None, None]


def test_scratch_files_are_hidden_and_unique() -> None:
    one, other = folders.scratch_name("7.json"), folders.scratch_name("7.json")
    assert one != other and one.startswith(".7.json.") and one.endswith(".tmp")


def test_names_of_scripts_and_tables() -> None:
    """Legal names stay as they are, and others get a digest, so that no two become the same."""
    assert folders.safe_name("shop.orders-1") == "shop.orders-1"
    assert folders.safe_name("Shop to Kafka") == "Shop_to_Kafka-27f671"
    assert len({folders.safe_name(name) for name in ("a b", "a_b", "a/b", "größe", "gr__e", "")}) == 6

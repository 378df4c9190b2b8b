from __future__ import annotations

import socket
from pathlib import Path

import pytest

from bridge.embedded.broker import Broker
from bridge.errors import KafkaError
from tests.embedded.test_processes import gone
from tests.kafka.topics import send
from tests.reader import messages


@pytest.mark.slow
def test_a_folder_is_one_broker_forever(tmp_path: Path) -> None:
    """Restarted after a power cut, a broker has its data, cluster id and port, and a small log."""
    broker = Broker(tmp_path)
    with pytest.raises(KafkaError, match="no address before it is started"):
        _ = broker.bootstrap
    with broker:
        broker.create_topic("t", partitions=2)
        with pytest.raises(KafkaError, match="topic 't' exists already"):
            broker.create_topic("t")
        send(broker.bootstrap, "t", [(b"k", b"v")])
        before = (broker.bootstrap, broker.cluster_id)
        assert broker.start() is broker
        broker.kill()
        assert not broker.running
    with Broker(tmp_path) as again:
        assert (again.bootstrap, again.cluster_id) == before
        assert [m.value() for m in messages(again.bootstrap, "t")] == [b"v"]
        assert again.pid is not None
        pid = again.pid
    assert gone(pid, 0.5)
    assert (tmp_path / "broker.log").stat().st_size < 200_000


def test_a_taken_port_is_an_error_with_the_log(tmp_path: Path) -> None:
    """The error has the address, the log file and the broker's own reason."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(KafkaError, match=f"127.0.0.1:{port} .*(bind|use)") as failed:
            Broker(tmp_path, port=port).start()
    assert str(tmp_path / "broker.log") in str(failed.value)

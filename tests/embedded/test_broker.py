from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bridge.embedded.broker import Broker
from bridge.errors import KafkaError
from tests.kafka.topics import send
from tests.reader import messages


def _gone(pid: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            # A zombie (its new parent may be slow to reap it) is as good as gone.
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.1)
    return False


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
    assert _gone(pid, 0.5)
    assert (tmp_path / "broker.log").stat().st_size < 200_000


def test_the_broker_dies_with_its_parent(tmp_path: Path) -> None:
    """kill -9 of the process that started it leaves no broker behind."""
    code = (
        "import sys, time; from pathlib import Path; from bridge.embedded.broker import Broker;"
        "b = Broker(Path(sys.argv[1])).start(); print(b.pid, flush=True); time.sleep(60)"
    )
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert not _gone(pid, 0.2)
        parent.send_signal(signal.SIGKILL)
    assert _gone(pid, 15)


def test_a_taken_port_is_an_error_with_the_log(tmp_path: Path) -> None:
    """The error has the address, the log file and the broker's own reason."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(KafkaError, match=f"127.0.0.1:{port} .*(bind|use)") as failed:
            Broker(tmp_path, port=port).start()
    assert str(tmp_path / "broker.log") in str(failed.value)

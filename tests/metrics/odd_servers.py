"""Servers that are no good receivers: they answer what is not HTTP, or slowly."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager


@contextmanager
def answering(first: bytes, again: bytes, pause: float) -> Iterator[str]:
    """A server that answers each request by `first`, and by `again` after each pause; yields its address."""
    ended = threading.Event()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            try:
                self.request.recv(1 << 16)
                self.request.sendall(first)
                for _ in range(80):
                    if ended.wait(pause):
                        break
                    self.request.sendall(again)
            except OSError:  # the other side has gone
                pass

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        ended.set()
        server.shutdown()
        server.server_close()
        thread.join()


def garbled() -> AbstractContextManager[str]:
    """It speaks no HTTP."""
    return answering(b"SSH-2.0-nonsense\r\n\r\n", b"", 0.01)


def slow() -> AbstractContextManager[str]:
    """It sends a header now and then, so that no read of a socket takes long, but never all of them."""
    return answering(b"HTTP/1.1 200 OK\r\n", b"X-More: 1\r\n", 0.1)

"""A proxy before a real registry that checks credentials, is slow, or fails, as a test orders."""

from __future__ import annotations

import ssl
import threading
import time
import urllib.error
import urllib.request
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit


class Gate:
    """`accepts` are the Authorization headers let through (none: all); `failures` requests are answered with 503."""

    def __init__(self, url: str, tls: ssl.SSLContext | None = None) -> None:
        self.accepts: set[str] = set()
        self.failures = 0
        self.delay = 0.0
        self.passed = 0
        behind = urlsplit(url)
        self._behind = f"{behind.scheme}://{behind.netloc}"
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        if tls is not None:
            self._server.socket = tls.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self._server.server_address[1]}{behind.path}"

    def __enter__(self) -> Gate:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, method: str, path: str, authorization: str, body: bytes) -> tuple[int, bytes]:
        time.sleep(self.delay)
        if self.failures:
            self.failures -= 1
            return 503, b"{}"
        if self.accepts and authorization not in self.accepts:
            return 401, b'{"error_code": 401, "message": "no"}'
        self.passed += 1
        request = urllib.request.Request(f"{self._behind}{path}", body or None, method=method)
        request.add_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        try:
            with urllib.request.urlopen(request, timeout=10) as response:
                return response.status, response.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        gate = self

        class Handler(BaseHTTPRequestHandler):
            def handle(self) -> None:
                with suppress(OSError):  # a handshake that one side broke off
                    super().handle()

            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, text = gate.answer(
                    self.command, self.path, self.headers.get("Authorization", ""), body
                )
                try:
                    self.send_response(status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(text)))
                    self.end_headers()
                    self.wfile.write(text)
                except OSError:
                    pass  # who asked has given up waiting

            do_POST = do_GET

            def log_message(self, format: str, *args: Any) -> None:
                """Quiet."""

        return Handler

"""An HTTP proxy before a slow server that loses responses: it does what was asked, and the client hears nothing."""

from __future__ import annotations

import http.client
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_HOP = {"connection", "transfer-encoding", "keep-alive"}


class LossyProxy:
    """A context manager. `lose`: how many responses to PUT requests are to be lost; `delay`: seconds a request."""

    def __init__(self, host: str, port: int, delay: float = 0.0) -> None:
        self.lose = 0
        self.is_deaf_after_loss = False
        """Whether requests behind a lost response get none either, until this is set to False."""
        self.refuses = ""
        """A name of a client (`User-Agent`) that may do nothing; empty for none."""
        self.requests: list[str] = []
        """Method and path of each."""
        self._is_deaf = False
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _pass_on(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                proxy.requests.append(f"{self.command} {self.path}")
                proxy._is_deaf = proxy._is_deaf and proxy.is_deaf_after_loss
                if proxy._is_deaf:
                    self.close_connection = True
                    return
                if proxy.refuses and self.headers.get("User-Agent", "").startswith(proxy.refuses):
                    self.send_response(403)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                time.sleep(delay)
                behind = http.client.HTTPConnection(host, port, timeout=30)
                behind.request(self.command, self.path, body, dict(self.headers))
                answer = behind.getresponse()
                content = answer.read()
                if self.command == "PUT" and proxy.lose > 0:
                    proxy.lose -= 1
                    proxy._is_deaf = proxy.is_deaf_after_loss
                    self.close_connection = True
                    return
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in (*_HOP, "content-length") or self.command == "HEAD":
                        self.send_header(name, value)
                if self.command != "HEAD":
                    self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _pass_on

            def log_message(self, *_: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> LossyProxy:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

"""Runs a real schema registry server in one process, with Confluent's API; for demos and tests, not for production.

Schemas are stored in memory: a server that is started again has none.
"""

from __future__ import annotations

import subprocess
import time
import urllib.request
from pathlib import Path
from types import TracebackType

from bridge import jars
from bridge.embedded.processes import HOST, free_port, is_port_free, start_watchdog, stop_process
from bridge.errors import KafkaError

_START_SECONDS = 90.0
_STOP_SECONDS = 10.0
_API = "/apis/ccompat/v7"
_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")


class SchemaRegistryServer:
    """A schema registry server on 127.0.0.1 that ends with this process, however that ends; its log is in `folder`.

    `port` None uses a free one. Use it as a context manager, or call start() and stop(). It accepts every schema under
    every subject: it checks compatibility only when a client configures it.
    """

    def __init__(self, folder: Path, *, port: int | None = None, heap_mb: int = 256) -> None:
        self.folder = Path(folder).absolute()
        self.log = self.folder / "registry.log"
        self._port = port
        self._heap_mb = heap_mb
        self._process: subprocess.Popen[bytes] | None = None
        self._watchdog: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The URL for clients and the option `avro-confluent.url`; raises KafkaError before the first start()."""
        if self._port is None:
            raise KafkaError("the schema registry has no address before it is started")
        return f"http://{HOST}:{self._port}{_API}"

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        """The server's process id, while it runs."""
        return self._process.pid if self._process and self.running else None

    def start(self) -> SchemaRegistryServer:
        """Start the server unless it runs; returns when it answers.

        Raises KafkaError with the log file and its last error when it does not answer within 90 seconds.
        """
        if self.running:
            return self
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._port is None:
            self._port = free_port()
        if not is_port_free(self._port):
            # Quarkus binds the port last: until then the other server's responses would be taken for this one's.
            raise KafkaError(f"the schema registry cannot have port {self._port} on {HOST}: it is in use")
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(
                self._command(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,  # Ctrl-C in a terminal ends this process, which then stops the server
            )
        self._watchdog = start_watchdog(self._process.pid)
        try:
            self._wait_until_up(self._process)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop the server, by force after 10 seconds. May be called again."""
        process, self._process = self._process, None
        watchdog, self._watchdog = self._watchdog, None
        stop_process(process, watchdog, _STOP_SECONDS)

    def __enter__(self) -> SchemaRegistryServer:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _command(self) -> list[str]:
        application = jars.fetch_application("registry", jars.registry_coordinate())
        (runner,) = application.glob("*-runner.jar")
        settings = {"http.host": HOST, "http.port": self._port, "log.console.level": "WARN"}
        properties = [f"-Dquarkus.{key}={value}" for key, value in settings.items()]
        return [jars.java(), f"-Xmx{self._heap_mb}m", *_JVM, *properties, "-jar", str(runner)]

    def _wait_until_up(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + _START_SECONDS
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        while process.poll() is None:
            try:
                with direct.open(f"{self.url}/subjects", timeout=5) as answer:
                    answer.read()
                return
            except OSError:
                pass  # not up yet; the deadline decides
            if time.monotonic() > deadline:
                raise self._failed(f"did not answer within {_START_SECONDS:.0f} s")
            time.sleep(0.1)
        raise self._failed(f"ended with code {process.returncode} while starting")

    def _failed(self, what: str) -> KafkaError:
        lines = [x.strip() for x in self.log.read_text(errors="replace").splitlines() if x.strip()]
        errors = [x for x in lines if "ERROR" in x or "Exception" in x] or lines or ["(the log is empty)"]
        return KafkaError(f"the schema registry on {self.url} {what}: {errors[-1]}\nits log is {self.log}")

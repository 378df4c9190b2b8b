"""Runs a real schema registry server in one process, with Confluent's API; for demos and tests, not for production.

Schemas are stored in memory: a server that is started again has none.
"""

from __future__ import annotations

import urllib.request
from pathlib import Path

from bridge import jars
from bridge.embedded.processes import HOST, Server, free_port, is_port_free
from bridge.errors import KafkaError

_API = "/apis/ccompat/v7"
_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")


class SchemaRegistryServer(Server):
    """A schema registry server; its log is in `folder`.

    `port` None uses a free one. It accepts every schema under every subject: it checks compatibility only when a client
    configures it.
    """

    title, start_seconds, stop_seconds, errors = "schema registry", 90.0, 10.0, "ERROR|Exception"

    def __init__(self, folder: Path, *, port: int | None = None, heap_mb: int = 256) -> None:
        super().__init__(Path(folder).absolute() / "registry.log", port)
        self._heap_mb = heap_mb

    @property
    def url(self) -> str:
        """The URL for clients and the option `avro-confluent.url`; raises KafkaError before the first start()."""
        return f"http://{HOST}:{self.port}{_API}"

    address = url

    def prepare(self) -> list[str]:
        """See Server.prepare."""
        if self._port is None:
            self._port = free_port()
        if not is_port_free(self._port):
            # Quarkus binds the port last: until then the other server's responses would be taken for this one's.
            raise KafkaError(f"the schema registry cannot have port {self._port} on {HOST}: it is in use")
        application = jars.fetch_application("registry", jars.registry_coordinate())
        (runner,) = application.glob("*-runner.jar")
        settings = {"http.host": HOST, "http.port": self._port, "log.console.level": "WARN"}
        properties = [f"-Dquarkus.{key}={value}" for key, value in settings.items()]
        return [jars.java(), f"-Xmx{self._heap_mb}m", *_JVM, *properties, "-jar", str(runner)]

    def is_up(self) -> bool:
        """See Server.is_up."""
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(f"{self.url}/subjects", timeout=5) as answer:
            answer.read()
        return True

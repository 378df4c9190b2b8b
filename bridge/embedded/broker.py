"""Runs a real Kafka broker in a folder: one process, one node, KRaft; for demos and tests, not for production.

The folder contains everything (data, cluster id, port, log), so a broker that is started on it again continues.
`Listeners` configures listeners that require a password or a client certificate.
"""

from __future__ import annotations

import os
import subprocess
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from bridge import jars
from bridge.embedded.processes import HOST, Server, free_port, is_port_free
from bridge.errors import KafkaError
from bridge.kafka import admin
from bridge.watchdog import LOG4J

PROTOCOLS = ("SASL_PLAINTEXT", "SASL_SSL", "SSL")
_MODULES = "org.apache.kafka.common.security"
_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_CONFIG = """\
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,{protocols}
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256
ssl.keystore.type=PEM
ssl.keystore.location={certificate}
ssl.truststore.type=PEM
ssl.truststore.location={authority}
listener.name.ssl.ssl.client.auth=required
listener.name.sasl_ssl.ssl.client.auth=none
"""


@dataclass(frozen=True)
class Listeners:
    """Accepts `users` (name to password) by PLAIN and SCRAM-SHA-256, and client certificates of `authority` by SSL.

    `certificate` is the broker's own, with its key; both files are PEM. The SSL listener requires a client certificate.
    The ports are free ones.
    """

    users: Mapping[str, str] = field(repr=False)
    certificate: Path
    authority: Path
    super_users: tuple[str, ...] = ()
    """With any, all other users need ACLs, except on the listener without authentication. The user name of a client
    certificate is its subject, such as CN=name."""
    ports: Mapping[str, int] = field(default_factory=lambda: {p: free_port() for p in PROTOCOLS})

    def address(self, protocol: str) -> str:
        """Return `host:port` of the listener for `protocol`."""
        return f"{HOST}:{self.ports[protocol]}"

    def server_properties(self) -> tuple[str, str]:
        """Return the listeners in Kafka's notation, and their other settings."""
        listeners = ",".join(f"{protocol}://{self.address(protocol)}" for protocol in PROTOCOLS)
        logins = "".join(f' user_{name}="{password}"' for name, password in self.users.items())
        modules = {
            "plain": f"{_MODULES}.plain.PlainLoginModule required{logins};",
            "scram-sha-256": f"{_MODULES}.scram.ScramLoginModule required;",
        }
        lines = [
            f"listener.name.{protocol.lower()}.{mechanism}.sasl.jaas.config={module}\n"
            for protocol in PROTOCOLS[:2]
            for mechanism, module in modules.items()
        ]
        config = _CONFIG.format(
            certificate=self.certificate,
            authority=self.authority,
            protocols=",".join(f"{protocol}:{protocol}" for protocol in PROTOCOLS),
        )
        if self.super_users:
            names = [f"User:{name}" for name in ("ANONYMOUS", *self.super_users)]
            lines += [f"authorizer.class.name={_AUTHORIZER}\n", f"super.users={';'.join(names)}\n"]
        return listeners, config + "".join(lines)

    def format_options(self) -> list[str]:
        """Return the options of the storage tool that set the users' passwords."""
        return [
            f"--add-scram=SCRAM-SHA-256=[name={name},password={password}]"
            for name, password in self.users.items()
        ]


# Kafka's pom has no slf4j binding, which its distribution adds; Spark ships one, so nothing else is fetched.
# Brokers before 4.0 need classes of log4j 1.2, too.
_LOGGING = (
    *("slf4j-api-2.*.jar", "log4j-slf4j2-impl-*.jar", "log4j-api-2.*.jar", "log4j-core-2.*.jar"),
    "log4j-1.2-api-2.*.jar",
)
_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")
# Brokers before 3.0 need the protocol of the controller's listener.
# Retention uses the records' own timestamps, so old ones of tests and demos would expire.
_SERVER = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
listeners={listeners},CONTROLLER://{host}:{controller}
advertised.listeners={listeners}
log.dirs={data}
num.partitions=1
log.retention.ms=-1
auto.create.topics.enable=false
group.initial.rebalance.delay.ms=0
offsets.topic.num.partitions=4
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
log.cleaner.dedupe.buffer.size=16777216
"""


class Broker(Server):
    """A broker with its data in `folder`.

    `port` None uses the folder's port if that is still free, else a free one. Topics are not created automatically,
    unless `settings` say so: see `create_topic`. `listeners` are added to the one without authentication; their users
    are those of the folder's first start. `settings` override the broker settings of this module. `version` is Kafka's:
    2.8, the first with KRaft, or later.
    """

    title, start_seconds, stop_seconds, pause = "broker", 60.0, 15.0, 0.05

    def __init__(
        self,
        folder: Path,
        *,
        port: int | None = None,
        listeners: Listeners | None = None,
        settings: Mapping[str, str] | None = None,
        version: str = jars.KAFKA_BROKER,
    ) -> None:
        self.folder = Path(folder).absolute()
        super().__init__(self.folder / "broker.log", port)
        self._listeners = listeners
        self._settings = settings or {}
        self._version = version
        self._client: AdminClient | None = None

    @property
    def bootstrap(self) -> str:
        """`host:port` for clients; raises KafkaError before the first start()."""
        return f"{HOST}:{self.port}"

    address = bootstrap

    @property
    def cluster_id(self) -> str | None:
        """The cluster id of the folder; None before the first start()."""
        properties = self.folder / "data" / "meta.properties"
        lines = properties.read_text().splitlines() if properties.exists() else []
        return next((x.partition("=")[2] for x in lines if x.startswith("cluster.id=")), None)

    def prepare(self) -> list[str]:
        """See Server.prepare."""
        data = self.folder / "data"
        data.mkdir(parents=True, exist_ok=True)
        self._port = self._choose_port()
        server = self.folder / "server.properties"
        listeners, more = f"PLAINTEXT://{self.bootstrap}", ""
        if self._listeners is not None:
            others, more = self._listeners.server_properties()
            listeners = f"{listeners},{others}"
        text = _SERVER.format(host=HOST, listeners=listeners, controller=free_port(), data=data)
        server.touch(mode=0o600)
        overrides = "".join(f"{name}={value}\n" for name, value in self._settings.items())
        server.write_text(text + more + overrides)
        (self.folder / "log4j2.properties").write_text(LOG4J.format(file=self.log, megabytes=5, kept=1))
        if self.cluster_id is None:
            self._format(server)
        client: dict[str, str | int | float | bool] = {
            "bootstrap.servers": self.bootstrap,
            "log_level": 0,
            "reconnect.backoff.max.ms": 200,
        }
        self._client = AdminClient(client)
        return self._command("kafka.Kafka", str(server))

    def kill(self) -> None:
        """Kill the broker (SIGKILL), as a power failure would; its data stay in the folder."""
        if self._process is not None and self.running:
            self._process.kill()
            self._process.wait()
        self.stop()

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        """Create a topic; returns when clients can see it. Raises KafkaError when it exists."""
        if not admin.ensure_topic({"bootstrap.servers": self.bootstrap}, name, partitions, config or {}):
            raise KafkaError(f"topic '{name}' exists already on {self.bootstrap}")

    def _choose_port(self) -> int:
        if self._port is not None:
            return self._port
        port_file = self.folder / "port"
        if port_file.exists() and is_port_free(last_port := int(port_file.read_text())):
            return last_port
        return free_port()

    def _command(self, *arguments: str) -> list[str]:
        shipped = find_spec("pyspark")
        folders = (shipped.submodule_search_locations if shipped else None) or []
        spark_jars = Path(next(iter(folders))) / "jars"
        class_path = [p for pattern in _LOGGING for p in sorted(spark_jars.glob(pattern))]
        class_path += jars.fetch("broker", jars.broker_coordinates(self._version))
        logging = (self.folder / "log4j2.properties").as_uri()
        heap = "-Xmx512m"
        return [
            jars.java(),
            heap,
            *_JVM,
            f"-Dlog4j2.configurationFile={logging}",
            "-cp",
            os.pathsep.join(map(str, class_path)),
            *arguments,
        ]

    def _format(self, server: Path) -> None:
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        # With `=`, because an id may begin with a dash.
        options = [f"--cluster-id={cluster}", "--config", str(server)]
        if self._listeners is not None:
            options += self._listeners.format_options()
        tool = self._command("kafka.tools.StorageTool", "format", *options)
        with self.log.open("ab") as out:
            done = subprocess.run(tool, stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False)
        if done.returncode:
            raise self.failed("could not prepare its folder")

    def is_up(self) -> bool:
        """Whether this process answers, by its cluster id: another broker may have the port."""
        assert self._client is not None
        try:
            if self._client.list_topics(timeout=1.0).cluster_id != self.cluster_id:
                return False
        except KafkaException:
            return False
        self._client = None
        (self.folder / "port").write_text(f"{self._port}\n")
        return True

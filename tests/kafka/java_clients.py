"""Kafka's Java clients in a JVM of their own, without Spark: what they know, and what they take."""

from __future__ import annotations

import glob
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError

from bridge import jars

_BYTES = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
_KINDS = ("consumer.ConsumerConfig", "producer.ProducerConfig", "admin.AdminClientConfig")


class JavaClients:
    """The clients of one version."""

    def __init__(self, gateway: JavaGateway) -> None:
        self._jvm: Any = gateway.jvm

    def names(self) -> frozenset[str]:
        """Every setting that a consumer, a producer or an admin client has."""
        names: set[str] = set()
        for kind in _KINDS:
            package, name = kind.split(".")
            config = getattr(getattr(self._jvm.org.apache.kafka.clients, package), name)
            names |= set(config.configDef().names())
        return frozenset(names)

    def refusal(self, reader: Mapping[str, str], admin: Mapping[str, str], *, whole: bool) -> str | None:
        """Why a client refuses its settings; `whole` makes the clients, else the settings are only parsed."""
        clients = self._jvm.org.apache.kafka.clients
        settings = self._map({**reader, "key.deserializer": _BYTES, "value.deserializer": _BYTES})
        try:
            if whole:
                now = self._jvm.java.time.Duration.ZERO
                clients.consumer.KafkaConsumer(settings).close(now)
                clients.admin.Admin.create(self._map(admin)).close(now)
            else:
                clients.consumer.ConsumerConfig(settings)
                clients.admin.AdminClientConfig(self._map(admin))
        except Py4JJavaError as refused:
            error, causes = refused.java_exception, []
            while error is not None:
                causes.append(str(error.toString()))
                error = error.getCause()
            return " <- ".join(causes)
        return None

    def _map(self, settings: Mapping[str, str]) -> Any:
        made = self._jvm.java.util.HashMap()
        for key, value in settings.items():
            made.put(key, value)
        return made


@contextmanager
def java_clients(name: str) -> Iterator[JavaClients]:
    """The Java clients among the jars of `spark` (its reader's) or of `broker` (newer ones)."""
    coordinates = jars.spark_coordinates() if name == "spark" else jars.broker_coordinates()
    own = [str(jar) for jar in jars.fetch(name, coordinates)]
    shipped = glob.glob(os.path.join(os.path.dirname(pyspark.__file__), "jars", "*.jar"))
    [py4j] = [jar for jar in shipped if os.path.basename(jar).startswith("py4j-")]
    logging = [
        jar for jar in shipped if os.path.basename(jar).startswith(("slf4j-api", "lz4", "zstd", "jackson"))
    ]
    port = launch_gateway(
        jarpath=py4j,
        classpath=os.pathsep.join([*own, *logging]),
        java_path=jars.java(),
        die_on_exit=True,
        redirect_stderr=subprocess.DEVNULL,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))
    try:
        yield JavaClients(gateway)
    finally:
        with suppress(Exception):
            gateway.shutdown()

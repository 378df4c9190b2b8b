"""The rules of Databricks' serverless compute, in front of a server of Spark Connect of one's own.

What its documentation says (docs.databricks.com, "Serverless compute limitations" and "Set Spark configuration
properties"): six settings can be set, no frame is kept, streams end by themselves (available-now), no view is global,
Python tasks have no network. A request that breaks a rule gets the error of Databricks, and no other one is changed.
Which settings can be read is not documented: here those of which pyspark's own client reads some. Tasks have no network
as their Python has no client of Kafka.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status
from pyspark.sql.connect.proto import base_pb2

from bridge.embedded.processes import HOST, free_port
from tests.backend.connect_server import ConnectServer

SETTINGS = {
    "spark.databricks.execution.timeout",
    "spark.sql.ansi.enabled",
    "spark.sql.files.maxPartitionBytes",
    "spark.sql.legacy.timeParserPolicy",
    "spark.sql.session.timeZone",
    "spark.sql.shuffle.partitions",
}
"""Those that can be set."""
_READABLE = ("spark.sql.", "spark.python.", "spark.connect.")
_SERVICE = base_pb2.DESCRIPTOR.services_by_name["SparkConnectService"]
_OPTIONS = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
_CACHES, _GLOBAL = re.compile(r"\s*(UN)?CACHE\s", re.I), re.compile(r"\bGLOBAL\s+TEMP", re.I)
_SETS = re.compile(r"\s*SET\s+([\w.]+)\s*=", re.I)

Broken = tuple[str, str]
"""The condition of the error, and its message."""


def broken_rule(method: str, request: Any) -> Broken | None:
    """Return the error for a request that serverless compute refuses."""
    if method == "Config":
        return _config(request.operation)
    if method == "AnalyzePlan" and request.WhichOneof("analyze") in ("persist", "unpersist"):
        return _unsupported(f"{request.WhichOneof('analyze').upper()} TABLE")
    if method != "ExecutePlan":
        return None
    command = request.plan.command
    kind = command.WhichOneof("command_type")
    if kind == "checkpoint_command":
        return _unsupported("CHECKPOINT")
    if kind == "create_dataframe_view" and command.create_dataframe_view.is_global:
        return _unsupported("GLOBAL TEMPORARY VIEW")
    if kind == "write_stream_operation_start" and not command.write_stream_operation_start.available_now:
        return (
            "INFINITE_STREAMING_TRIGGER_NOT_SUPPORTED",
            "Trigger type is not supported for this cluster type.",
        )
    if kind == "sql_command":
        text = command.sql_command.sql or command.sql_command.input.sql.query
        if _CACHES.match(text):
            return _unsupported("CACHE TABLE")
        if _GLOBAL.search(text):
            return _unsupported("GLOBAL TEMPORARY VIEW")
        if (set_to := _SETS.match(text)) and set_to[1] not in SETTINGS:
            return _no_setting(set_to[1])
    return None


def _config(operation: Any) -> Broken | None:
    kind = operation.WhichOneof("op_type")
    given = getattr(operation, kind)
    names: Iterable[str] = (
        [pair.key for pair in given.pairs] if hasattr(given, "pairs") else getattr(given, "keys", ())
    )
    for name in names:
        if name not in SETTINGS and (kind in ("set", "unset") or not name.startswith(_READABLE)):
            return _no_setting(name)
    return None


def _no_setting(name: str) -> Broken:
    return "CONFIG_NOT_AVAILABLE", f"Configuration {name} is not available. SQLSTATE: 42K0I"


def _unsupported(what: str) -> Broken:
    return "NOT_SUPPORTED_WITH_SERVERLESS", f"{what} is not supported on serverless compute. SQLSTATE: 0A000"


class ServerlessServer:
    """Runs inside a `with` block. `remote` is its address, for SPARK_REMOTE; `refused` has the rules that clients have
    tried to break."""

    def __init__(self, folder: Path) -> None:
        no_kafka = folder / "tasks" / "confluent_kafka"
        no_kafka.mkdir(parents=True)
        (no_kafka / "__init__.py").write_text(
            'raise OSError("tasks of serverless compute have no network")\n'
        )
        self._server = ConnectServer(folder, task_path=no_kafka.parent)
        self.refused: list[Broken] = []

    def __enter__(self) -> ServerlessServer:
        self._server.__enter__()
        self._channel = grpc.insecure_channel(self._server.remote.removeprefix("sc://"), options=_OPTIONS)
        self._proxy = grpc.server(ThreadPoolExecutor(32), handlers=[_Handler(self)], options=_OPTIONS)
        port = free_port()
        self._proxy.add_insecure_port(f"{HOST}:{port}")
        self._proxy.start()
        self.remote = f"sc://{HOST}:{port}"
        return self

    def __exit__(self, *_: object) -> None:
        self._proxy.stop(0).wait()
        self._channel.close()
        self._server.__exit__()

    def handler(self, method: Any, path: str) -> grpc.RpcMethodHandler:
        """What answers the requests of one method."""
        streams = {
            (False, False): "unary_unary",
            (False, True): "unary_stream",
            (True, False): "stream_unary",
        }
        kind = streams[method.client_streaming, method.server_streaming]
        call = getattr(self._channel, kind)(path)
        make = getattr(grpc, f"{kind}_rpc_method_handler")

        def answer(request: Any, context: grpc.ServicerContext) -> Any:
            if not method.client_streaming:
                self._check(method, request, context)
            metadata = [
                (k, v) for k, v in context.invocation_metadata() if not k.startswith(("user-agent", "grpc-"))
            ]
            try:
                return call(request, metadata=metadata)
            except grpc.RpcError as failed:
                _fail(failed, context)

        def answers(request: Any, context: grpc.ServicerContext) -> Any:
            stream = answer(request, context)
            context.add_callback(stream.cancel)
            try:
                yield from stream
            except grpc.RpcError as failed:
                _fail(failed, context)

        return make(answers if method.server_streaming else answer)

    def _check(self, method: Any, request: bytes, context: grpc.ServicerContext) -> None:
        parsed = getattr(base_pb2, method.input_type.name).FromString(request)
        if (broken := broken_rule(method.name, parsed)) is None:
            return
        self.refused.append(broken)
        condition, message = broken
        about = error_details_pb2.ErrorInfo(
            reason="org.apache.spark.SparkException",
            metadata={"errorClass": condition, "classes": json.dumps(["org.apache.spark.SparkException"])},
        )
        detail = AnyMessage()
        detail.Pack(about)
        code, _ = grpc.StatusCode.INTERNAL.value
        status = status_pb2.Status(code=code, message=f"[{condition}] {message}", details=[detail])
        context.abort_with_status(rpc_status.to_status(status))


def _fail(failed: Any, context: grpc.ServicerContext) -> None:
    context.set_trailing_metadata(failed.trailing_metadata() or ())
    context.abort(failed.code(), failed.details())


class _Handler(grpc.GenericRpcHandler):  # type: ignore[misc]
    def __init__(self, server: ServerlessServer) -> None:
        self._server = server
        self._made: dict[str, grpc.RpcMethodHandler] = {}

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        path = details.method
        if path not in self._made:
            self._made[path] = self._server.handler(_SERVICE.methods_by_name[path.rpartition("/")[2]], path)
        return self._made[path]

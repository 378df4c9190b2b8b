"""A local server of Azure's blobs (Azurite), a process of its own, and how Spark and a plain client reach it.

Azurite has no endpoint of Data Lake Storage, which Hadoop's ABFS client needs. Spark reaches it by Hadoop's older
client of blobs, registered for `abfs://`; that client knows an emulator at one port only.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import shutil
import urllib.request
from email.utils import formatdate
from pathlib import Path
from urllib.parse import urlencode
from xml.etree import ElementTree

import obstore
from obstore.store import AzureStore as Client

from bridge import jars
from bridge.embedded.processes import HOST, Server

_COMMAND = shutil.which("azurite-blob")
_PORT = 10000
_NAME, _CONTAINER = "devstoreaccount1", "lake"
_ACCOUNT = f"{_NAME}.dfs.core.windows.net"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Azurite's own, which its documentation names."""
_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
# That client has no FileContext, by which Spark would write a checkpoint.


def azure_jars() -> list[Path]:
    """The jars of Hadoop's clients of Azure."""
    return jars.fetch("hadoop-azure", ["org.apache.hadoop:hadoop-azure:3.4.2"], beside_spark=True)


class AzureStore(Server):
    """A context manager with one container. The server keeps blobs in memory. Stands in for `ObjectStore`."""

    root = f"abfs://{_CONTAINER}@{_ACCOUNT}"
    title, start_seconds, stop_seconds, address = "Azurite", 30.0, 10.0, f"{HOST}:{_PORT}"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "azurite.log", _PORT)
        self.home = folder

    def prepare(self) -> list[str]:
        assert _COMMAND is not None, "Azurite is not installed: npm install --global azurite@3"
        command = [_COMMAND, "--blobHost", HOST, "--blobPort", str(_PORT), "--inMemoryPersistence", "--loose"]
        return [*command, "--skipApiVersionCheck"]

    def is_up(self) -> bool:
        _ask("PUT", restype="container")
        return True

    def settings(self) -> dict[str, str]:
        """Hadoop's settings for the account, as a session's configuration takes them."""
        return {
            "fs.abfs.impl": "org.apache.hadoop.fs.azure.NativeAzureFileSystem",
            "fs.AbstractFileSystem.abfs.impl": "org.apache.hadoop.fs.azure.Wasb",
            "fs.azure.storage.emulator.account.name": _ACCOUNT,
            "fs.azure.skip.metrics": "true",
            "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINTS,
            f"fs.azure.account.key.{_ACCOUNT}": _KEY,
            f"fs.azure.abfs.endpoint.{_ACCOUNT}": f"{HOST}:{_PORT}",
        }

    def delta_rs_options(self) -> dict[str, str]:
        """The options of delta-rs for this server."""
        return {
            "azure_storage_account_key": _KEY,
            "azure_storage_endpoint": f"http://{HOST}:{_PORT}/{_NAME}",
            "azure_allow_http": "true",
        }

    def put(self, name: str, data: bytes) -> None:
        """Write a blob."""
        obstore.put(_client(), name, data)

    def names(self, prefix: str) -> list[str]:
        """The names of all blobs below a prefix, in their order."""
        listed = ElementTree.fromstring(_ask("GET", restype="container", comp="list", prefix=prefix))
        return sorted(str(blob.findtext("Name")) for blob in listed.iter("Blob"))

    def text(self, name: str) -> str:
        """The content of a blob."""
        return bytes(obstore.get(_client(), name).bytes()).decode()


def _client() -> Client:
    return Client(
        _CONTAINER,
        account_name=_NAME,
        account_key=_KEY,
        endpoint=f"http://{HOST}:{_PORT}/{_NAME}",
        client_options={"allow_http": True},
    )


def _ask(method: str, **query: str) -> str:
    """A request of the container's own. obstore creates none, and does not read the list of Azurite, in which the
    folders of Hadoop's client have no type. See "Authorize with Shared Key"."""
    date, version = formatdate(usegmt=True), "2020-10-02"
    asked = "".join(f"\n{name}:{value}" for name, value in sorted(query.items()))
    resource = f"/{_NAME}/{_NAME}/{_CONTAINER}{asked}"
    signed = f"{method}{chr(10) * 12}x-ms-date:{date}\nx-ms-version:{version}\n{resource}"
    mark = base64.b64encode(hmac.digest(base64.b64decode(_KEY), signed.encode(), hashlib.sha256)).decode()
    headers = {"x-ms-date": date, "x-ms-version": version, "Authorization": f"SharedKey {_NAME}:{mark}"}
    url = f"http://{HOST}:{_PORT}/{_NAME}/{_CONTAINER}?{urlencode(query)}"
    request = urllib.request.Request(url, method=method, headers=headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return str(answer.read().decode("utf-8-sig"))

"""Configures listeners of the embedded broker that require a password or a client certificate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bridge.embedded.processes import HOST, free_port

__all__ = ["PROTOCOLS", "Listeners"]

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

"""Shared by tests of logins and rights: users, their options, and bob's ACLs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from bridge.definition import Topic
from bridge.embedded.broker import Broker, Listeners
from bridge.secret import Secret
from tests.kafka.certificates import PASSWORD
from tests.kafka.topics import topic_of

LOGINS = {"alice": "login-hunter2", "bob": "bobs-hunter3"}
"""alice may do everything, bob what ACLs allow him."""
WRONG = "wrong-hunter2"
SECRETS = (PASSWORD, WRONG, *LOGINS.values())
_MODULES = {"PLAIN": "plain.PlainLoginModule", "SCRAM-SHA-256": "scram.ScramLoginModule"}


@dataclass(frozen=True)
class Place:
    """A broker with its listeners, and the files of a client."""

    broker: Broker
    listeners: Listeners
    stores: Mapping[str, Path]

    def topic(self, name: str, protocol: str, properties: Mapping[str, str]) -> Topic:
        given = {"security.protocol": protocol, **properties}
        return topic_of(name, servers=self.listeners.address(protocol), properties=given)

    def store(self, option: str, name: str) -> dict[str, str]:
        """`ssl.truststore.*` or `ssl.keystore.*` for the store `name`, which ends with its type."""
        type = name.rpartition(" ")[2]
        given = {f"{option}.location": str(self.stores[name]), f"{option}.type": type}
        return given if type == "PEM" else {**given, f"{option}.password": Secret(PASSWORD)}

    def allow(self, kind: str, name: str, *operations: str) -> None:
        """Allow bob these operations on the topics, groups or transactional ids with this prefix."""
        client = AdminClient({"bootstrap.servers": self.broker.bootstrap})
        for operation in operations:
            acl = AclBinding(*_acl(kind, name, operation))
            client.create_acls([acl])[acl].result()

    def forbid(self, kind: str, name: str) -> None:
        """Remove all ACLs of this prefix."""
        client = AdminClient({"bootstrap.servers": self.broker.bootstrap})
        acls = AclBindingFilter(*_acl(kind, name, "any"))
        client.delete_acls([acls])[acls].result()


def _acl(kind: str, name: str, operation: str) -> tuple[Any, ...]:
    what = ResourceType[kind.upper()], name, ResourcePatternType.PREFIXED
    return *what, "User:bob", "*", AclOperation[operation.upper()], AclPermissionType.ALLOW


def jaas(user: str, password: str | None = None, mechanism: str = "SCRAM-SHA-256") -> str:
    """`sasl.jaas.config` for a user."""
    given = LOGINS[user] if password is None else password
    module = f"org.apache.kafka.common.security.{_MODULES[mechanism]}"
    return f'{module} required username="{user}" password="{given}";'

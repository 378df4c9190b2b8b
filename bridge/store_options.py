"""The options with which the library object_store, and delta-rs, reach a store: from Hadoop's settings for it.

They name the same account and the same login. Where a setting means something that the library has no option for,
only Spark reaches the store. The options hold secrets: they are never logged, and never part of an error. Sources:
Hadoop's "Hadoop-AWS module" (`fs.s3a.*`, for one bucket `fs.s3a.bucket.NAME.*`) and "Hadoop Azure Support: ABFS"
(`fs.azure.*`, ending in the account or in container and account for one of them); the settings of the Cloud Storage
connector (`fs.gs.*`); `AmazonS3ConfigKey`, `AzureConfigKey` and `GoogleConfigKey` of object_store.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from urllib.parse import urlsplit

from bridge.ways import NotThisWay

_OF_SPARK = "spark.hadoop."
_MISREAD = re.compile(r"%[0-9A-Fa-f]{2}|\\")
"""In the name of a folder."""

Get = Callable[[str], str | None]
"""Looks up a setting."""
Settings = Callable[[], Mapping[str, str]]
_given: ContextVar[Settings] = ContextVar("settings of Spark for files on object stores", default=dict)


@contextmanager
def given_settings(settings: Settings) -> Iterator[None]:
    """Within the block, files on object stores are read with Spark's `settings`, asked for with the first such file."""
    before = _given.set(settings)
    try:
        yield
    finally:
        _given.reset(before)


def misread_name(folder: str) -> str | None:
    """Why delta-rs does not find a folder of this machine; None if it does.

    With an escape of a URI in a name, it looks into the folder whose name the escape means."""
    found = _MISREAD.search(folder)
    return found and f"the path has {found[0]!r} in a name, which delta-rs takes for another one"


def file_options(uri: str) -> dict[str, str]:
    """Return the options with which delta-rs reads what is at `uri`: of the settings given, those for its store; {} for
    a path of this machine.

    What they leave open, or say in a way of Hadoop alone, delta-rs looks up itself: in the environment, a profile, the
    instance or the container.
    """
    parts = urlsplit(uri)
    if not parts.netloc:
        return {}
    options = {"max_retries": "3", "retry_timeout": "30s"}
    if parts.scheme in REMOTE:
        prefixes = tuple(f"{_OF_SPARK}fs.{name}." for name in ("s3a", "azure", "gs"))
        conf = {
            key.removeprefix(_OF_SPARK): value
            for key, value in _given.get()().items()
            if key.startswith(prefixes)
        }
        if any(key.startswith(f"fs.{REMOTE[parts.scheme]}.") for key in conf):
            with suppress(NotThisWay):
                options |= hadoop_options(uri, conf.get)
    if (
        parts.scheme in ("s3", "s3a")
        and "aws_endpoint" not in options
        and os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://")
    ):
        options["aws_allow_http"] = "true"
    return options


REMOTE = {"s3": "s3a", "s3a": "s3a", "abfs": "azure", "abfss": "azure", "gs": "gs"}
"""The schemes of the stores that the library reaches, and how Hadoop's settings for each begin."""


def hadoop_options(location: str, get: Get) -> dict[str, str]:
    """Return endpoint, region and login of the store of `location`, as `get` finds them among Hadoop's settings.

    On S3 and Google Cloud Storage, a login that the settings leave open is looked up by the library. Raises NotThisWay
    for a store, or a setting, that only Spark follows.
    """
    parts = urlsplit(location)
    if parts.scheme not in REMOTE:
        raise NotThisWay(f"only Spark reads {parts.scheme}:")
    if REMOTE[parts.scheme] == "s3a":
        return _s3_options(parts.netloc, get)
    if REMOTE[parts.scheme] == "gs":
        return _google_options(get)
    container, _, account = parts.netloc.rpartition("@")
    return _azure_options(container, account, get)


_ANONYMOUS = "AnonymousAWSCredentialsProvider"
_PROVIDERS = "fs.s3a.aws.credentials.provider"
_KNOWN_PROVIDERS = (
    "TemporaryAWSCredentialsProvider",
    "SimpleAWSCredentialsProvider",
    "EnvironmentVariableCredentialsProvider",
    "IAMInstanceCredentialsProvider",
    _ANONYMOUS,
)
"""Providers of credentials that the library has, too, under other names."""
_S3_ALONE = (
    "accesspoint.arn",
    "assumed.role.arn",
    "custom.signers",
    "encryption.algorithm",
    "proxy.host",
    "requester.pays.enabled",
    "server-side-encryption-algorithm",
    "signing-algorithm",
)
_NO_CONDITIONS = "fs.s3a.create.conditional.enabled"
_DEFAULT_ENDPOINT = "s3.amazonaws.com"
_S3_LOGIN = {
    "fs.s3a.access.key": "aws_access_key_id",
    "fs.s3a.secret.key": "aws_secret_access_key",
    "fs.s3a.session.token": "aws_session_token",
}


def _s3_options(bucket: str, look_up: Get) -> dict[str, str]:
    def get(name: str) -> str:
        own = look_up(f"fs.s3a.bucket.{bucket}.{name.removeprefix('fs.s3a.')}")
        return (own if own is not None else look_up(name) or "").strip()

    for name in _S3_ALONE:
        if get(f"fs.s3a.{name}").lower() not in ("", "false"):
            raise _not_followed(f"fs.s3a.{name}")
    if get(_NO_CONDITIONS).lower() == "false":
        raise NotThisWay(f"{_NO_CONDITIONS} is false")
    providers = [name.strip() for name in get(_PROVIDERS).split(",") if name.strip()]
    for provider in providers:
        if provider.rpartition(".")[2] not in _KNOWN_PROVIDERS:
            raise NotThisWay(f"credentials come from {provider}, which delta-rs does not have")
    options = {"aws_conditional_put": "etag"}
    endpoint = get("fs.s3a.endpoint")
    if endpoint and endpoint != _DEFAULT_ENDPOINT:
        secure = _is_on(get("fs.s3a.connection.ssl.enabled"), default=True)
        url = endpoint if "://" in endpoint else f"{'https' if secure else 'http'}://{endpoint}"
        options["aws_endpoint"] = url
        if url.startswith("http://"):
            options["aws_allow_http"] = "true"
    if region := get("fs.s3a.endpoint.region"):
        options["aws_region"] = region
    by_path = _is_on(get("fs.s3a.path.style.access"), default=False)
    options["aws_virtual_hosted_style_request"] = "false" if by_path else "true"
    if any(provider.endswith(_ANONYMOUS) for provider in providers):
        return {**options, "aws_skip_signature": "true"}
    return options | {option: secret for name, option in _S3_LOGIN.items() if (secret := get(name))}


_ACCOUNTS = ".dfs.core.windows.net"
_AUTH = "fs.azure.account.auth.type"
_TOKENS = "fs.azure.account.oauth.provider.type"
_AZURE_ALONE = (
    "fs.azure.account.keyprovider",
    "fs.azure.encryption.context.provider.type",
    "fs.azure.encryption.encoded.client-provided-key",
    "fs.azure.sas.token.provider.type",
)
_AZURE_TOKENS = {
    "ClientCredsTokenProvider": "client_secret",
    "MsiTokenProvider": "managed_identity",
    "WorkloadIdentityTokenProvider": "workload_identity",
}
"""Hadoop's providers of OAuth tokens, and what the library calls them."""
_SIMPLE_KEYS = "org.apache.hadoop.fs.azurebfs.services.SimpleKeyProvider"


def _azure_options(container: str, account: str, look_up: Get) -> dict[str, str]:
    def get(name: str) -> str:
        """Of the container, else of the account, else of all (`AbfsConfiguration.getPasswordString`)."""
        for key in (f"{name}.{container}.{account}", f"{name}.{account}", name):
            if (found := look_up(key)) is not None:
                return found.strip()
        return ""

    def needed(name: str) -> str:
        found = get(name)
        if not found:
            raise NotThisWay(f"Hadoop's settings have no {name} for {account}")
        return found

    if not account.endswith(_ACCOUNTS):
        raise NotThisWay(f"only Spark reaches accounts outside of {_ACCOUNTS[1:]}")
    for name in _AZURE_ALONE:
        if get(name) not in ("", _SIMPLE_KEYS):
            raise _not_followed(name)
    options = {}
    if emulator := get("fs.azure.abfs.endpoint"):
        options["azure_storage_endpoint"] = f"http://{emulator}/{account.removesuffix(_ACCOUNTS)}"
        options["azure_allow_http"] = "true"
    auth = get(_AUTH).lower() or "sharedkey"
    if auth == "sharedkey":
        key = needed("fs.azure.account.key")
        return options | {"azure_credential_type": "access_key", "azure_storage_account_key": key}
    if auth == "sas":
        token = needed("fs.azure.sas.fixed.token")
        return options | {"azure_credential_type": "sas_token", "azure_storage_sas_key": token}
    provider = get(_TOKENS).rpartition(".")[2]
    login = _AZURE_TOKENS.get(provider) if auth == "oauth" else None
    if login is None:
        raise NotThisWay(f"the login is {provider or auth}, which delta-rs does not have")
    options["azure_credential_type"] = login
    if login == "managed_identity":
        given = {
            "azure_storage_client_id": get("fs.azure.account.oauth2.client.id"),
            "azure_msi_endpoint": get("fs.azure.account.oauth2.msi.endpoint"),
        }
        return options | {option: value for option, value in given.items() if value}
    options["azure_storage_client_id"] = needed("fs.azure.account.oauth2.client.id")
    if login == "client_secret":
        address = needed("fs.azure.account.oauth2.client.endpoint")
        server = re.fullmatch(r"(https://[^/]+)/([^/]+)/oauth2/(?:v2\.0/)?token", address)
        if server is None:
            raise _not_followed("fs.azure.account.oauth2.client.endpoint")
        return options | {
            "azure_storage_client_secret": needed("fs.azure.account.oauth2.client.secret"),
            "azure_storage_authority_host": server[1],
            "azure_storage_tenant_id": server[2],
        }
    authority = get("fs.azure.account.oauth2.msi.authority") or "https://login.microsoftonline.com"
    return options | {
        "azure_federated_token_file": get("fs.azure.account.oauth2.token.file")
        or "/var/run/secrets/azure/tokens/azure-identity-token",
        "azure_storage_authority_host": authority.rstrip("/"),
        "azure_storage_tenant_id": needed("fs.azure.account.oauth2.msi.tenant"),
    }


_GOOGLE_ALONE = (
    "fs.gs.auth.access.token.provider",
    "fs.gs.auth.access.token.provider.impl",
    "fs.gs.auth.impersonation.service.account",
    "fs.gs.auth.service.account.private.key",
    "fs.gs.encryption.key",
    "fs.gs.proxy.address",
    "fs.gs.requester.pays.mode",
    "fs.gs.storage.root.url",
)
_KEY_FILE = "fs.gs.auth.service.account.json.keyfile"


def _google_options(look_up: Get) -> dict[str, str]:
    def get(name: str) -> str:
        return (look_up(name) or "").strip()

    for name in _GOOGLE_ALONE:
        if get(name) not in ("", "DISABLED"):
            raise _not_followed(name)
    auth = get("fs.gs.auth.type").upper()
    if auth == "UNAUTHENTICATED":
        return {"google_skip_signature": "true"}
    if auth in ("", "SERVICE_ACCOUNT_JSON_KEYFILE") and (file := get(_KEY_FILE)):
        return {"google_service_account": file}
    if auth not in ("", "APPLICATION_DEFAULT", "COMPUTE_ENGINE"):
        raise NotThisWay(f"the login is {auth}, which delta-rs does not have")
    return {}


def _not_followed(setting: str) -> NotThisWay:
    return NotThisWay(f"{setting} is set, which delta-rs does not follow")


def _is_on(text: str, *, default: bool) -> bool:
    """As Hadoop reads a setting that is true or false."""
    return {"true": True, "false": False}.get(text.lower(), default)

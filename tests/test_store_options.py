"""Which options delta-rs gets for a file on a store: Spark's settings of its bucket, else what the environment has."""

from __future__ import annotations

import pytest

from bridge.store_options import file_options, given_settings, hadoop_options
from bridge.ways import NotThisWay

RETRIES = {"max_retries": "3", "retry_timeout": "30s"}


@pytest.fixture(autouse=True)
def no_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)


def test_without_settings_the_environment_decides() -> None:
    assert file_options("s3a://b/o.yaml") == RETRIES
    assert file_options("abfss://c@a/o.yaml") == RETRIES
    assert file_options("/conf/orders.yaml") == {}


def test_an_endpoint_of_the_environment_may_be_http(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://minio:9000")
    assert file_options("s3a://b/o.yaml") == {**RETRIES, "aws_allow_http": "true"}


def test_settings_of_the_bucket_win_over_general_ones() -> None:
    settings = {
        "spark.hadoop.fs.s3a.endpoint": "minio:9000",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        "spark.hadoop.fs.s3a.access.key": "general",
        "spark.hadoop.fs.s3a.bucket.b.access.key": "own",
        "spark.hadoop.fs.s3a.bucket.b.path.style.access": " TRUE",
        "spark.app.name": "x",
    }
    with given_settings(lambda: settings):
        found, other = file_options("s3a://b/o.yaml"), file_options("s3://c/o.yaml")
        assert file_options("gs://b/o.yaml") == RETRIES
    assert found == {
        **RETRIES,
        "aws_conditional_put": "etag",
        "aws_endpoint": "http://minio:9000",
        "aws_allow_http": "true",
        "aws_virtual_hosted_style_request": "false",
        "aws_access_key_id": "own",
    }
    assert other["aws_access_key_id"] == "general"
    assert other["aws_virtual_hosted_style_request"] == "true"
    assert file_options("s3a://b/o.yaml") == RETRIES


def test_settings_are_asked_for_with_the_first_file() -> None:
    def unwanted() -> dict[str, str]:
        raise AssertionError("nobody needs them")

    with given_settings(unwanted):
        assert file_options("/conf/orders.yaml") == {}


def test_anonymous_requests_have_no_login() -> None:
    conf = {
        "fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider",
        "fs.s3a.access.key": "k",
    }
    assert hadoop_options("s3a://b/t", conf.get) == {
        "aws_conditional_put": "etag",
        "aws_virtual_hosted_style_request": "true",
        "aws_skip_signature": "true",
    }


AZURE = "abfss://c@acme.dfs.core.windows.net/t"
OAUTH = {
    "fs.azure.account.auth.type": "OAuth",
    "fs.azure.account.oauth2.client.id": "i",
}
TOKENS = "fs.azure.account.oauth.provider.type"
PACKAGE = "org.apache.hadoop.fs.azurebfs.oauth2"


@pytest.mark.parametrize(
    ("conf", "options"),
    [
        (
            {"fs.azure.account.key": "k"},
            {"azure_credential_type": "access_key", "azure_storage_account_key": "k"},
        ),
        (
            {
                "fs.azure.account.key": "of all",
                "fs.azure.account.key.acme.dfs.core.windows.net": " k ",
                "fs.azure.account.key.other.dfs.core.windows.net": "o",
                "fs.azure.account.keyprovider": "org.apache.hadoop.fs.azurebfs.services.SimpleKeyProvider",
            },
            {"azure_credential_type": "access_key", "azure_storage_account_key": "k"},
        ),
        (
            {
                "fs.azure.account.auth.type": "SAS",
                "fs.azure.sas.fixed.token.acme.dfs.core.windows.net": "a",
                "fs.azure.sas.fixed.token.c.acme.dfs.core.windows.net": "c",
            },
            {"azure_credential_type": "sas_token", "azure_storage_sas_key": "c"},
        ),
        (
            {
                **OAUTH,
                TOKENS: f"{PACKAGE}.ClientCredsTokenProvider",
                "fs.azure.account.oauth2.client.secret": "s",
                "fs.azure.account.oauth2.client.endpoint": "https://login.microsoftonline.com/t/oauth2/token",
            },
            {
                "azure_credential_type": "client_secret",
                "azure_storage_client_id": "i",
                "azure_storage_client_secret": "s",
                "azure_storage_authority_host": "https://login.microsoftonline.com",
                "azure_storage_tenant_id": "t",
            },
        ),
        (
            {**OAUTH, TOKENS: f"{PACKAGE}.MsiTokenProvider"},
            {"azure_credential_type": "managed_identity", "azure_storage_client_id": "i"},
        ),
        (
            {
                **OAUTH,
                TOKENS: f"{PACKAGE}.WorkloadIdentityTokenProvider",
                "fs.azure.account.oauth2.msi.tenant": "t",
            },
            {
                "azure_credential_type": "workload_identity",
                "azure_storage_client_id": "i",
                "azure_federated_token_file": "/var/run/secrets/azure/tokens/azure-identity-token",
                "azure_storage_authority_host": "https://login.microsoftonline.com",
                "azure_storage_tenant_id": "t",
            },
        ),
    ],
)
def test_the_login_of_azure_is_that_of_hadoop(conf: dict[str, str], options: dict[str, str]) -> None:
    assert hadoop_options(AZURE, conf.get) == options
    with given_settings(lambda: {f"spark.hadoop.{name}": value for name, value in conf.items()}):
        assert file_options(AZURE) == {**RETRIES, **options}


@pytest.mark.parametrize(
    ("location", "conf", "why"),
    [
        (AZURE, {}, "Hadoop's settings have no fs.azure.account.key for acme.dfs.core.windows.net"),
        (
            AZURE,
            {"fs.azure.account.auth.type": "Custom"},
            "the login is custom, which delta-rs does not have",
        ),
        (
            AZURE,
            {**OAUTH, TOKENS: f"{PACKAGE}.RefreshTokenBasedTokenProvider"},
            "the login is RefreshTokenBasedTokenProvider, which delta-rs does not have",
        ),
        (
            AZURE,
            {
                **OAUTH,
                TOKENS: f"{PACKAGE}.ClientCredsTokenProvider",
                "fs.azure.account.oauth2.client.endpoint": "https://login/hidden",
            },
            "fs.azure.account.oauth2.client.endpoint is set, which delta-rs does not follow",
        ),
        (
            AZURE,
            {"fs.azure.account.keyprovider": "com.example.Vault"},
            "fs.azure.account.keyprovider is set, which delta-rs does not follow",
        ),
        (
            "abfss://c@acme.dfs.core.chinacloudapi.cn/t",
            {},
            "only Spark reaches accounts outside of dfs.core.windows.net",
        ),
        (
            "gs://b/t",
            {"fs.gs.encryption.key": "hidden"},
            "fs.gs.encryption.key is set, which delta-rs does not follow",
        ),
        (
            "gs://b/t",
            {"fs.gs.auth.type": "USER_CREDENTIALS"},
            "the login is USER_CREDENTIALS, which delta-rs does not have",
        ),
        ("hdfs://h/t", {}, "only Spark reads hdfs:"),
    ],
)
def test_a_setting_without_an_option_is_left_to_spark(location: str, conf: dict[str, str], why: str) -> None:
    with pytest.raises(NotThisWay) as refused:
        hadoop_options(location, conf.get)
    assert str(refused.value) == why


def test_the_login_of_google_is_that_of_hadoop() -> None:
    file = {"fs.gs.auth.service.account.json.keyfile": "/key.json"}
    for conf, options in (
        ({}, {}),
        ({"fs.gs.auth.type": "COMPUTE_ENGINE", **file}, {}),
        (
            {"fs.gs.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE", **file},
            {"google_service_account": "/key.json"},
        ),
        (file, {"google_service_account": "/key.json"}),
        ({"fs.gs.auth.type": "unauthenticated"}, {"google_skip_signature": "true"}),
    ):
        assert hadoop_options("gs://b/t", conf.get) == options

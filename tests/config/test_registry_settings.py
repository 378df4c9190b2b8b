"""The options of a schema registry: the settings for its client, and messages for illegal options."""

from __future__ import annotations

from typing import Any

import pytest

from bridge import config, ddl
from bridge.config.definition_warnings import warnings
from bridge.config.registry_settings import registry_settings
from bridge.definition import Topic
from bridge.errors import OptionError
from bridge.secret import Secret

_URL = "http://127.0.0.1:8081"


def _topic(more: str = "", topic: str = "orders") -> Topic:
    return config.resolve_topic(
        ddl.parse(
            "CREATE TABLE t (id BIGINT, v STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'upsert-kafka',"
            f" 'topic' = '{topic}', 'properties.bootstrap.servers' = 'h:1', 'key.format' = 'avro-confluent',"
            f" 'key.avro-confluent.url' = '{_URL}', 'value.format' = 'avro-confluent',"
            f" 'value.avro-confluent.url' = '{_URL}'{more})"
        )
    )


def test_subjects_are_named_after_the_topic() -> None:
    topic = _topic(", 'value.avro-confluent.subject' = 'mine'")
    assert topic.key is not None
    assert (topic.key.options["subject"], topic.value.options["subject"]) == ("orders-key", "mine")


def test_several_topics_give_no_subject_and_cannot_be_published() -> None:
    topic = _topic(topic="a;b")
    assert "subject" not in topic.value.options
    with pytest.raises(
        OptionError, match=r"'topic' metadata column|Option 'avro-confluent.subject' is required"
    ):
        config.refuse_unpublishable(topic)


def test_secrets_are_masked() -> None:
    topic = _topic(", 'value.avro-confluent.basic-auth.user-info' = 'me:hidden'")
    assert topic.value.options["basic-auth.user-info"] == Secret("me:hidden")
    assert "hidden" not in repr(topic)
    settings = registry_settings(
        {"url": "http://me:hidden@h:1/x", "basic-auth.credentials-source": "URL"}, ""
    )
    assert settings.shown == "http://h:1/x" and "hidden" not in repr(settings)


def test_a_warning_of_keys_with_a_schema_id() -> None:
    assert any("sends the same key to another partition" in text for text in warnings(_topic()))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"url": "localhost:8081"}, "'value.x.url': it must be http://host:port"),
        (
            {"basic-auth.credentials-source": "SASL_INHERIT"},
            "Kafka's credentials are not sent to the registry",
        ),
        ({"basic-auth.credentials-source": "NO"}, "legal values are USER_INFO, URL"),
        (
            {"basic-auth.credentials-source": "USER_INFO"},
            "'value.x.basic-auth.user-info': USER_INFO requires it",
        ),
        ({"basic-auth.user-info": "hidden"}, "set it to <user>:<password>"),
        (
            {"basic-auth.user-info": "me:hidden", "basic-auth.credentials-source": "URL"},
            "'value.x.basic-auth.user-info': it has no effect",
        ),
        (
            {"basic-auth.user-info": "me:hidden", "url": "http://a:hidden@h:1"},
            "the URL also contains credentials",
        ),
        ({"bearer-auth.credentials-source": "OAUTHBEARER"}, "the only legal value is STATIC_TOKEN"),
        (
            {"bearer-auth.credentials-source": "STATIC_TOKEN"},
            "'value.x.bearer-auth.token': STATIC_TOKEN requires it",
        ),
        (
            {"bearer-auth.token": "hidden", "basic-auth.user-info": "a:hidden"},
            "credentials for basic authentication are also set",
        ),
        ({"ssl.keystore.password": "hidden"}, "has no effect without 'ssl.keystore.location'"),
        (
            {"properties.foo": "hidden"},
            "'value.x.properties.foo': .* legal settings are auto.register.schemas",
        ),
        ({"properties.max.retries": "hidden"}, "'value.x.properties.max.retries': .* a whole number"),
        ({"properties.bearer.auth.logical.cluster": "c"}, "has no effect without 'bearer-auth.token'"),
    ],
)
def test_unsupported_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message) as refused:
        registry_settings({"url": _URL, **options}, "value.x.")
    assert "hidden" not in str(refused.value)


def test_known_properties_are_translated() -> None:
    settings = registry_settings(
        {"url": _URL, "properties.auto.register.schemas": "false", "properties.http.read.timeout.ms": "1500"},
        "",
    )
    assert not settings.auto_register and dict(settings.client)["timeout"] == 1.5

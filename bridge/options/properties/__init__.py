"""`properties.*`: every setting of Kafka's clients as a value, and how the bridge treats it."""

from bridge.options.properties.catalog import SETTINGS, check_property, ignored_warning
from bridge.options.properties.combinations import check_combinations, unused_security_settings
from bridge.options.properties.login import Login, login
from bridge.options.properties.model import PREFIX, Client, Setting, Treatment
from bridge.options.properties.sasl import parse_jaas

__all__ = [
    "PREFIX",
    "SETTINGS",
    "Client",
    "Login",
    "Setting",
    "Treatment",
    "check_combinations",
    "check_property",
    "ignored_warning",
    "login",
    "parse_jaas",
    "unused_security_settings",
]

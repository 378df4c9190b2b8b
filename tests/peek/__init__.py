"""Tests of bridge.peek: no Spark in any of them."""

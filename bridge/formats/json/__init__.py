"""Flink's json format."""

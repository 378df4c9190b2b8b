"""Scenarios in our own words, each run against the oracle, the Spark steps and a real broker."""

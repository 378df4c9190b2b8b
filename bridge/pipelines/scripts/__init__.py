"""Runs scripts in Flink SQL: the state of their sources, the results of their INSERTs, and what is sent of them."""

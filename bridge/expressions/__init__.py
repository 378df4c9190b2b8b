"""Flink's expressions in Spark: the functions, operators and casts that a query or a computed column may use.

`typed.adapt` gives each node the type that it has in Flink, and the Spark expression with its value. What Flink gives
is kept as data of the tests, by `make flink-vectors`.
"""

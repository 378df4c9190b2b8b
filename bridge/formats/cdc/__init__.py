"""Flink's formats of change documents in JSON: Debezium, Canal, Maxwell, Oracle GoldenGate.

Fields are read as the json format reads them, by the same code. (Flink reads them with its tree parser, which rounds
fractions in a STRING to DOUBLE first; here they stay as written.)
"""

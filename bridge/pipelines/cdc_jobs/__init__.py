"""Jobs of Flink CDC at work."""

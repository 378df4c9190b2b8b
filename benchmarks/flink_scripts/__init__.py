"""Whole scripts on Flink and on the bridge, over the same topics (`make flink-scripts`): what both sent is compared."""

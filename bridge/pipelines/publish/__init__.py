"""Delta table to topic: the loop, the planning of ranges, their records, and their delivery."""

"""Topic to Delta table: the loop, one batch, a preview of the next batch, and replay of the quarantine."""

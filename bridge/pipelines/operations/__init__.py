"""Maintains a table (OPTIMIZE, VACUUM) and reports the progress of both directions."""

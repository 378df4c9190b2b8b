"""Compares a topic with a table: row by row, as the changes that make them equal, and for `verify`."""

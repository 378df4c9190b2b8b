"""Compares a topic with a table and repairs only what differs, in either direction."""

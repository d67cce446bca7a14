"""Streams of changes: one epsilon pays for a whole horizon of steps."""

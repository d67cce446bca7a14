"""Memoised mechanisms: a permanent answer, made once a value, and reports that are made from it."""

"""Mechanisms that only the papers' comparisons need: one file a mechanism. They are registered with all others."""

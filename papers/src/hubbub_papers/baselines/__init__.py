"""Mechanisms that only the papers' comparisons need: one file per mechanism. They are registered with all others."""

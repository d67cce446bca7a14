"""Alarms: what the collector makes of each step's own estimates, and whom it tells."""

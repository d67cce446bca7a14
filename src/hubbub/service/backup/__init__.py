"""Backups of either store: its database and its folder of reports, consistent with each other."""

"""Backups: the database and the folder of kept reports, consistent with each other, from either store."""

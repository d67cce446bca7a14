"""Audits of what a mechanism spends, ledgers of what a device has spent, plans of the error that an epsilon gives."""

"""Shufflers of collections: programs between devices and the collector, which make it forget whose report is whose."""

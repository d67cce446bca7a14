"""Shuffling: who stands between the devices and the server, so that no report can be traced to its sender."""

"""Watching a stream live: of simulated devices, of a file, or of a collector."""

"""Amplification by shuffling: what a local epsilon is worth once nobody knows whose report is whose."""

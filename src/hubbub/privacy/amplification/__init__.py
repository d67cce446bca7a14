"""Amplification by shuffling: the central guarantee of reports that cannot be linked to their senders."""

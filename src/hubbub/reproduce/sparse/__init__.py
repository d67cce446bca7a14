"""Mechanisms for sparse ternary vectors, measured side by side: what the figures of two papers are made of."""

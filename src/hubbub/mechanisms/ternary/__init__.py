"""Sparse ternary vectors and key-value data: one file per mechanism."""

"""Simulated populations, whose true values are known.

Only this package, and the packages that import it, hold true values next to their estimates.
"""

"""Frequent items and itemsets of sets that people hold: SVIM and SVSM (T. Wang, 2021, section 5.3)."""

"""Frequent items and itemsets of sets that people hold: SVIM and SVSM (dissertation, section 5.3)."""

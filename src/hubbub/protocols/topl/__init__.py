"""ToPL: sums and means of unbounded numbers over time. A threshold is found through square waves, then values are
clipped to it and reported by the hybrid mechanism (tops-topl, section 4)."""

"""Counts and sums over boxes of private dimensions: HI, HIO, SC, MG (dissertation, chapter 7), HDG, and adaptive."""

"""Counts and sums over boxes of private dimensions: HI, HIO, SC, MG (T. Wang, 2021, chapter 7), HDG, and adaptive."""

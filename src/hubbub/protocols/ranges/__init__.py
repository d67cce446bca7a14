"""Sums and counts over boxes of several private dimensions: HI, HIO, SC and MG (dissertation, chapter 7), and HDG."""

"""The methods that chapter 9 compares for histograms of shuffled reports."""

"""What chapter 9 compares for histograms of shuffled reports: methods from a central epsilon to estimated shares."""

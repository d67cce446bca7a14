"""The rivals of CALM in chapter 6."""

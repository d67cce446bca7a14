"""ToPL: sums and means over time of numbers with rare large values. First a threshold is estimated from square wave
reports; then devices clip their values to it and report by the hybrid mechanism (T. Wang et al., 2021, section 4)."""

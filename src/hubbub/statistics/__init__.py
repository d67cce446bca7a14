"""Pure functions of numbers: distributions, ratios, intervals of what was selected, the reach of forged reports."""

"""Wang et al., Continuous Release of Data Streams under both Centralized and Local Differential Privacy (CCS 2021)."""

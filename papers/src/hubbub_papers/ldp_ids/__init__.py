"""Table 2 and figures 3 to 11 of LDP-IDS."""

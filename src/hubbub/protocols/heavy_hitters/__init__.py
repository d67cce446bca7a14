"""Heavy hitters: the most common values of a domain that is too large to list."""

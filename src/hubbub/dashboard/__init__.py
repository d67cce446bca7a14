"""The collector's pages: what was learned, what came in, what is promised. It reads answers only."""

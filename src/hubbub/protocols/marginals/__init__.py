"""Joint distributions of several attributes, from people who each report on a few of them."""

"""Which mechanism to take, and what error to expect of it."""

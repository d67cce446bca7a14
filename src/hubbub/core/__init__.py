"""The types that everything shares: random numbers, hashes, specs, domains, reports, sketches, estimates."""

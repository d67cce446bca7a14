"""What everything shares: randomness, hashing, specs, reports, sketches, estimates. No algorithms."""

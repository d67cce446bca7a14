"""Random numbers from one secure source, and samplers that are exact in integers."""

"""The collector: store, rounds and ingest together, and the thread that changes it."""

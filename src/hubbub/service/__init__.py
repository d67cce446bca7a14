"""The collector: asks go out, reports come in and are counted once, releases are kept. It never sees a value."""

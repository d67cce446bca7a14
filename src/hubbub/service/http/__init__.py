"""The collector on the network: routes, limits, problems, metrics."""

"""Every compiled loop, one file per kernel. Servers import them when they need them; devices never do."""

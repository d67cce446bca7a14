"""Every compiled loop, one file a kernel. Servers import them when they need them; devices never do."""

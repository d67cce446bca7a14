"""Every compiled loop, one file a kernel. Nothing here is imported until a server needs it."""

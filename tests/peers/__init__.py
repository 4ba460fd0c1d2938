"""Independent counterparts of the agent: a schema oracle, clients, and histories in memory."""

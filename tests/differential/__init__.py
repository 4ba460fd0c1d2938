"""Our replay beside the replay that each tool's own ACP agent gave for the same sessions."""

"""Other people's clients, installed as their users install them, drive the real `bridge acp`."""

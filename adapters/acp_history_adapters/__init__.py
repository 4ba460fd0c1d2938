"""The adapters that come with acp-history-bridge, one folder per tool."""

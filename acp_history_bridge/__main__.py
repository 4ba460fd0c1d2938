"""`python -m acp_history_bridge` is the same program as the console scripts."""

import sys

from acp_history_bridge.cli import main

if __name__ == "__main__":
    sys.exit(main())

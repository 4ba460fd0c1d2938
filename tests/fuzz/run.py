"""`make fuzz`: mutated records for every adapter and mutated frames for the agent, with a new seed each time.

What fails is written to `tests/fuzz/findings`, from where the suite reads it again; it exits with 1 then.
"""

import argparse
import hashlib
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.frames import fuzz_agent
from tests.fuzz.records import FINDINGS, FUZZED, fuzz_records


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=100_000, help="mutated records per adapter")
    parser.add_argument("--frames", type=int, default=20_000, help="mutated frames")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    found = 0
    for tool in FUZZED:
        begun = time.monotonic()
        with tempfile.TemporaryDirectory() as directory:
            failures, slowest = fuzz_records(tool, arguments.records, arguments.seed, Path(directory))
        print(f"{tool}: {len(failures)} failures, {time.monotonic() - begun:.0f} s, slowest batch {slowest:.2f} s")
        for failure in failures:
            data = b"\n".join(failure.records)
            FINDINGS.mkdir(exist_ok=True)
            (FINDINGS / f"{tool}-{hashlib.sha256(data).hexdigest()[:12]}.records").write_bytes(data)
            print(f"  {failure.what}")
        found += len(failures)
    with tempfile.TemporaryDirectory() as directory:
        codes = fuzz_agent(Path(directory), arguments.frames, arguments.seed)
    print(f"agent: {arguments.frames} frames, errors by code {dict(codes)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

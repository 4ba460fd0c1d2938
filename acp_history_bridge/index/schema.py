"""The tables of the index.

There are no migrations: the index is a cache, so an older version's tables are built anew. A change of these tables,
or of the fields of `SessionRecord`, takes a new version.
"""

from acp_history_bridge.database import Schema

__all__ = ["SCHEMA"]

# Paths and directories are BLOBs, because file names need not be valid UTF-8. Fingerprints are text, because inode
# numbers and file times can exceed 63 bits. `sort_key` is microseconds since the epoch.
_TABLES = {
    "store": """
        CREATE TABLE store (
            id INTEGER PRIMARY KEY,
            tool TEXT NOT NULL,
            root BLOB NOT NULL,
            layout TEXT NOT NULL,
            position INTEGER NOT NULL,
            reader TEXT NOT NULL,
            UNIQUE (tool, root, layout)
        )""",
    "unit": """
        CREATE TABLE unit (
            id INTEGER PRIMARY KEY,
            store_id INTEGER NOT NULL,
            path BLOB NOT NULL,
            fingerprint TEXT NOT NULL,
            again INTEGER NOT NULL,
            offset INTEGER NOT NULL,
            prefix BLOB,
            state BLOB NOT NULL,
            UNIQUE (store_id, path)
        )""",
    "record": """
        CREATE TABLE record (
            unit_id INTEGER NOT NULL,
            position INTEGER NOT NULL,
            plain_id TEXT NOT NULL,
            digest TEXT,
            data BLOB NOT NULL,
            PRIMARY KEY (unit_id, position)
        ) WITHOUT ROWID""",
    "session": """
        CREATE TABLE session (
            key TEXT PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            plain_id TEXT NOT NULL,
            unit_id INTEGER NOT NULL,
            position INTEGER NOT NULL,
            tool TEXT NOT NULL,
            sort_key INTEGER NOT NULL,
            title TEXT,
            folded TEXT NOT NULL,
            cwd BLOB,
            cwd_key BLOB,
            headless INTEGER NOT NULL,
            archived INTEGER NOT NULL
        ) WITHOUT ROWID""",
    "directory": """
        CREATE TABLE directory (
            digest TEXT PRIMARY KEY,
            path BLOB NOT NULL
        ) WITHOUT ROWID""",
    "problem": """
        CREATE TABLE problem (
            unit_id INTEGER NOT NULL,
            kind TEXT NOT NULL,
            number INTEGER NOT NULL,
            path BLOB NOT NULL,
            detail TEXT NOT NULL,
            line INTEGER,
            PRIMARY KEY (unit_id, kind)
        ) WITHOUT ROWID""",
}

_INDEXES = (
    "CREATE INDEX record_plain_id ON record (plain_id)",
    "CREATE INDEX record_digest ON record (digest) WHERE digest IS NOT NULL",
    "CREATE INDEX session_plain_id ON session (plain_id)",
    "CREATE INDEX session_order ON session (sort_key DESC, id)",
    "CREATE INDEX session_cwd ON session (cwd_key, sort_key DESC, id)",
)

SCHEMA = Schema(
    application_id=0x41434842,  # "ACHB"
    version=2,
    statements=(*_TABLES.values(), *_INDEXES),
    tables=frozenset(_TABLES),
)

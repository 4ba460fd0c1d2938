"""The index: which sessions there are, found incrementally and kept in SQLite.

    adapters ──► look (one unit) ──► update (units, records → sessions) ──► query (pages)
                      ▲                        │
                 scan (what to look at)        ▼
                                         changes, to whoever follows

Policy: the index is a cache. It can be thrown away at any time, and what is found step by step equals what a rebuild
finds (but for directories, which stay known after the session that named them has gone). Everything here is
synchronous and belongs to one thread; `library.Library` is the only part that others use.
"""

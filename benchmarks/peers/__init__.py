"""Other memories beside ours: the same texts and vectors, one process each, one table.

    make bench-peers

Everything is installed in an environment of its own from `requirements.txt`; a peer that cannot be imported is
named in the table and left out.
"""

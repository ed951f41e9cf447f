"""Speed as ratios against straightforward references of the same formulas, in one process.

Contestants take turns on one thread; processor seconds, the minimum of a few runs; the agreement of
their outputs stands beside every ratio.
"""

"""Index: training chunks by what they say, reachable from what the network represents."""

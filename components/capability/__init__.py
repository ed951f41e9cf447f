"""Capability on benchmarks that packages carry, without a hub: subsets, and called so."""

"""Scaling laws: plan a ladder of runs, measure its points, fit laws to them (paper §8)."""

"""Evaluation: what a checkpoint can do, and whether its explanations hold, on held-out text."""

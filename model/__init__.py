"""TENSORS: transformer, bottleneck, losses, sampling, training. Imports nothing to its right."""

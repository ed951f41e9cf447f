"""Training: tokens and a concept library become a checkpoint and its curve (paper §5, §9)."""

"""Mid-training: a checkpoint goes on under another mixture, without teacher forcing (paper §10)."""

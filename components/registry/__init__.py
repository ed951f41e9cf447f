"""Registry: a checkpoint with its scores, as a version a person can promote."""

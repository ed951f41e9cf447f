"""The lm-evaluation-harness on our checkpoints: its adaptor and its tasks. Only importer of it."""

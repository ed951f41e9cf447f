"""FILES: one folder a stage, and what stages share. Imports `model`, never `pipelines`."""

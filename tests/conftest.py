"""One torch thread, no network, nothing written outside the test's own folder."""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
os.environ["GX_ANALYTICS_ENABLED"] = "false"
os.environ.setdefault("MPLBACKEND", "Agg")

"""Names of the loss estimators (paper appendix H). No torch here; `model.likelihood` computes them.

fixed_rate_0.5   cross-entropy at masked tokens, half of them masked; no bound on the NLL
grid_9_rates     mean of the cross-entropies at rates 0.1, 0.2 … 0.9
mdlm_elbo        one rate a batch, weighted by 1 / rate: a bound on the NLL
per_block_elbo   one rate a block, weighted by 1 / rate: the same bound with less variance
autoregressive   next-token NLL; the one estimator of the AR families
"""

from typing import Literal

DiffusionEstimator = Literal["fixed_rate_0.5", "grid_9_rates", "mdlm_elbo", "per_block_elbo"]
Estimator = Literal[DiffusionEstimator, "autoregressive"]

FIXED_RATE = 0.5
GRID_RATES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)

LOWEST_RATE = 1e-3
"""Rates of the two bounds lie in [this, 1): below it a masked token weighs over a thousand tokens
and the variance has no end. The stretch left out holds at most this share of the integral."""

"""The joint scaling law and its fit (paper §8.2; Hoffmann et al. 2022, approach 3).

    L(N, D)  =  E  +  A / N^alpha  +  B / D^beta

N parameters, D training tokens, L nats per token. Fitted on log losses: the Huber loss of the
log residuals, summed, is minimised by L-BFGS from a grid of starts. Three details decide whether
the optimiser reaches the optimum or stops beside it: the objective is scaled up (near 1e-3 the
usual tolerances stop early), the sum of the three terms is a log-sum-exp of their logarithms, and
ln N and ln D are centred, without which A and alpha can only move together.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

Floats = NDArray[np.float64]

HUBER_DELTA = 1e-3
SCALE = 1e4
MIN_EXPONENT = 1e-3
MAX_EXPONENT = 3.0
MIN_LOG_SHARE = -12.0

SCOUT_STEPS = 150
LAST_STEPS = 3000
RESAMPLE_STEPS = 200
"""A resample starts from the full fit, so it is near; where it is not, the runs fix nothing."""
KEPT_STARTS = 3
"""Starts that are followed to the end, the lowest after `SCOUT_STEPS`. Where runs are too few to
fix the law the ground is flat, and following all of them takes minutes to learn nothing."""

START_FLOORS = (0.3, 0.6, 0.9)
"""Shares of the mean loss that E has where a search starts."""
START_SPLITS = (0.3, 0.7)
"""Shares of the rest that A / N^alpha has where a search starts."""
START_EXPONENTS = (0.1, 0.4, 1.0)


@dataclass(frozen=True)
class JointLaw:
    """A fitted L(N, D). `objective` is the sum of Huber losses of the log residuals."""

    a: float
    b: float
    e_nats: float
    alpha: float
    beta: float
    objective: float

    @property
    def tokens_exponent(self) -> float:
        """Exponent of compute in the optimal number of tokens."""
        return self.alpha / (self.alpha + self.beta)

    @property
    def parameters_exponent(self) -> float:
        """Exponent of compute in the optimal number of parameters: a = beta / (alpha + beta)."""
        return self.beta / (self.alpha + self.beta)

    def predict(self, n_parameters_N: Floats, n_tokens_N: Floats) -> Floats:
        """Nats per token at each (N, D)."""
        return np.asarray(
            self.e_nats
            + np.exp(np.log(self.a) - self.alpha * np.log(n_parameters_N))
            + np.exp(np.log(self.b) - self.beta * np.log(n_tokens_N))
        )

    def optimal_parameters(self, flops: float, flops_per_pair: float) -> float:
        """Parameters of least loss where `flops` = `flops_per_pair` · N · D (classically 6)."""
        pairs = flops / flops_per_pair
        log_ratio = np.log(self.alpha * self.a) - np.log(self.beta * self.b)
        return float(np.exp((log_ratio + self.beta * np.log(pairs)) / (self.alpha + self.beta)))


def fit_joint(
    n_parameters_N: Floats,
    n_tokens_N: Floats,
    loss_nats_N: Floats,
    *,
    weight_N: Floats | None = None,
    starts: Sequence[JointLaw] = (),
    delta: float = HUBER_DELTA,
    steps: int = LAST_STEPS,
) -> JointLaw:
    """The law of least objective over all starts: those given, else a grid of 54."""
    problem = _Problem.of(n_parameters_N, n_tokens_N, loss_nats_N, weight_N, delta)
    given = [problem.vector(law) for law in starts] or problem.grid()
    scouted = sorted(
        (_descend(problem, vector, min(steps, SCOUT_STEPS)) for vector in given), key=_height
    )
    found = [_descend(problem, one.vector, steps) for one in scouted[:KEPT_STARTS]]
    best = min(found, key=_height)
    return problem.law(best.vector, best.height / SCALE)


@dataclass(frozen=True)
class _Descent:
    vector: Floats
    height: float


def _height(descent: _Descent) -> float:
    return descent.height


def _descend(problem: "_Problem", vector: Floats, steps: int) -> _Descent:
    result = minimize(
        problem.objective,
        vector,
        jac=True,
        method="L-BFGS-B",
        bounds=problem.bounds(),
        options={"maxiter": steps, "ftol": 1e-14, "gtol": 1e-9, "maxcor": 20},
    )
    return _Descent(np.asarray(result.x), float(result.fun))


@dataclass(frozen=True)
class _Problem:
    """The fit in centred coordinates: logs of the two terms at the mean point, log E, exponents."""

    log_parameters_N: Floats
    log_tokens_N: Floats
    log_loss_N: Floats
    weight_N: Floats
    centre_parameters: float
    centre_tokens: float
    delta: float

    @classmethod
    def of(
        cls,
        parameters_N: Floats,
        tokens_N: Floats,
        loss_N: Floats,
        weight_N: Floats | None,
        delta: float,
    ) -> "_Problem":
        log_parameters_N, log_tokens_N = np.log(parameters_N), np.log(tokens_N)
        centre_parameters, centre_tokens = (
            float(log_parameters_N.mean()),
            float(log_tokens_N.mean()),
        )
        return cls(
            log_parameters_N - centre_parameters,
            log_tokens_N - centre_tokens,
            np.log(loss_N),
            np.ones_like(loss_N) if weight_N is None else weight_N,
            centre_parameters,
            centre_tokens,
            delta,
        )

    def objective(self, vector: Floats) -> tuple[float, Floats]:
        """Scaled sum of Huber losses, and its gradient."""
        term_a, term_b, log_e, alpha, beta = vector
        terms_3N = np.empty((3, len(self.log_loss_N)))
        terms_3N[0] = term_a - alpha * self.log_parameters_N
        terms_3N[1] = term_b - beta * self.log_tokens_N
        terms_3N[2] = log_e
        top_N = terms_3N.max(axis=0)
        share_3N = np.exp(terms_3N - top_N)
        total_N = share_3N.sum(axis=0)
        share_3N /= total_N
        log_predicted_N = top_N + np.log(total_N)
        residual_N = log_predicted_N - self.log_loss_N
        clipped_N = np.clip(residual_N, -self.delta, self.delta)
        loss = np.sum(self.weight_N * clipped_N * (residual_N - clipped_N / 2))
        slope_N = self.weight_N * clipped_N
        gradient = np.array(
            [
                slope_N @ share_3N[0],
                slope_N @ share_3N[1],
                slope_N @ share_3N[2],
                -slope_N @ (share_3N[0] * self.log_parameters_N),
                -slope_N @ (share_3N[1] * self.log_tokens_N),
            ]
        )
        return float(SCALE * loss), SCALE * gradient

    def grid(self) -> list[Floats]:
        """54 starts that explain the mean loss with different shares and exponents."""
        mean = float(self.log_loss_N.mean())
        return [
            np.array(
                [
                    mean + np.log((1 - floor) * split),
                    mean + np.log((1 - floor) * (1 - split)),
                    mean + np.log(floor),
                    alpha,
                    beta,
                ]
            )
            for floor, split, alpha, beta in product(
                START_FLOORS, START_SPLITS, START_EXPONENTS, START_EXPONENTS
            )
        ]

    def bounds(self) -> list[tuple[float, float]]:
        """Every term between a vanishing share and a few times the highest loss seen."""
        top = float(self.log_loss_N.max()) + 2.0
        term = (float(self.log_loss_N.min()) + MIN_LOG_SHARE, top)
        exponent = (MIN_EXPONENT, MAX_EXPONENT)
        return [term, term, term, exponent, exponent]

    def vector(self, law: JointLaw) -> Floats:
        return np.array(
            [
                np.log(law.a) - law.alpha * self.centre_parameters,
                np.log(law.b) - law.beta * self.centre_tokens,
                np.log(law.e_nats),
                law.alpha,
                law.beta,
            ]
        )

    def law(self, vector: Floats, objective: float) -> JointLaw:
        term_a, term_b, log_e, alpha, beta = (float(value) for value in vector)
        return JointLaw(
            a=float(np.exp(term_a + alpha * self.centre_parameters)),
            b=float(np.exp(term_b + beta * self.centre_tokens)),
            e_nats=float(np.exp(log_e)),
            alpha=alpha,
            beta=beta,
            objective=objective,
        )

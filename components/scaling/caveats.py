"""Reasons not to lean on a fitted law, in words a reader can weigh."""

from collections.abc import Sequence

import numpy as np

from components.scaling.isoflop import Exponents, Slice
from components.scaling.law import MAX_EXPONENT, MIN_EXPONENT, JointLaw
from components.scaling.points import Table

N_JOINT_PARAMETERS = 5
MIN_RUNS_FOR_JOINT = N_JOINT_PARAMETERS + 1
FEW_RUNS = 20
FEW_SIZES = 4
FEW_BUDGETS = 4
BUDGET_SPAN = 30.0


def caveats_of(
    columns: Table,
    slices: Sequence[Slice],
    exponents: Exponents | None,
    joint: JointLaw | None,
) -> list[str]:
    """What the design of a sweep and its fits leave open."""
    found = _of_the_design(columns)
    found += [
        f"budget {piece.budget_flops:.3g} FLOPs left out: {piece.problem}"
        for piece in slices
        if piece.problem
    ]
    if exponents is None:
        found.append("fewer than two budgets with a minimum inside their sizes: no exponents")
    return found + _of_the_joint_law(columns, joint)


def _of_the_design(columns: Table) -> list[str]:
    found = []
    n_sizes = len(np.unique(columns.n_parameters_N))
    budgets_N = np.unique(columns.budget_flops_N)
    span = float(budgets_N.max() / budgets_N.min())
    if n_sizes < FEW_SIZES:
        found.append(
            f"{n_sizes} sizes: a parabola through three sizes passes through every run, so its "
            f"vertex has no interval; the paper uses 4 to 6"
        )
    if len(budgets_N) < FEW_BUDGETS:
        found.append(f"{len(budgets_N)} budgets: the paper uses four")
    if span < BUDGET_SPAN:
        found.append(
            f"budgets span a factor of {span:.3g}: exponents read from less than "
            f"{BUDGET_SPAN:g} are a direction, not a law"
        )
    return found


def _of_the_joint_law(columns: Table, joint: JointLaw | None) -> list[str]:
    if joint is None:
        return [
            f"{len(columns)} runs for {N_JOINT_PARAMETERS} parameters: no joint law; "
            f"it needs {MIN_RUNS_FOR_JOINT} runs or more"
        ]
    found = []
    if len(columns) < FEW_RUNS:
        found.append(
            f"{len(columns)} runs for the {N_JOINT_PARAMETERS} parameters of the joint law: its "
            f"intervals resample those few runs and are too narrow"
        )
    at_bound = [
        name
        for name, value in (("alpha", joint.alpha), ("beta", joint.beta))
        if not 2 * MIN_EXPONENT < value < 0.999 * MAX_EXPONENT
    ]
    if joint.e_nats < 1e-3:
        at_bound.append("E")
    if at_bound:
        found.append(f"{' and '.join(at_bound)} at the edge of the search: the runs do not fix it")
    return found

"""The ladder of the scaling study: ten sizes from 10 M to 8 B, families with concepts beside those
without (paper §8).

The paper gives neither sizes nor budgets: 10 M to 8 B parameters, four budgets over three orders of
magnitude, four to six sizes a budget, each run within 15% of its target, and higher targets for the
families with concepts. The numbers are our choice.
"""

from components.scaling.config import LadderConfig, PointTraining, Size
from model.train_config import AlphaConfig, ObjectiveConfig, OptimConfig

SIZES = tuple(
    Size(
        width=width, n_layers=n_layers, n_heads=n_heads, n_kv_heads=n_kv_heads,
        mlp_width=4 * width, n_known=n_known, rank=rank,
    )
    for width, n_layers, n_heads, n_kv_heads, n_known, rank in (
        (320, 7, 5, 1, 2_048, 64), (448, 9, 7, 1, 2_048, 64), (512, 14, 8, 1, 4_096, 64),
        (640, 17, 10, 1, 4_096, 128), (768, 24, 12, 1, 4_096, 128),
        (1024, 27, 16, 2, 8_192, 128), (1536, 30, 24, 3, 16_384, 256),
        (2048, 34, 16, 2, 0, 256), (2560, 32, 20, 2, 0, 256), (4096, 32, 32, 4, 0, 256),
    )
)  # fmt: skip
"""Width × layers, heads of 64 or 128 channels, about one key-value head for eight, and a library
whose embeddings cost at most half of the backbone (0: all concepts there are)."""

OBJECTIVE = ObjectiveConfig(
    alpha_known=AlphaConfig(first=1.0, last=0.5, move_until=0.1, shape="cosine"),
    alpha_unknown=AlphaConfig(first=1.0, last=0.5),
    sparse_from=0.9,
)

TRAINING = PointTraining(
    length=4_096, block=64, batch_sequences=64, micro_batches=64, dtype="bfloat16", rank=64,
    optim=OptimConfig(peak_lr=4e-4, warmup=0.01, decay=0.1), objective=OBJECTIVE,
)  # fmt: skip


def ladder(budgets_flops: tuple[float, ...]) -> LadderConfig:
    """All four families at these budgets, those with concepts at four times each."""
    return LadderConfig(
        families=("ar", "cdlm", "ar_concept", "cdlm_concept"),
        budgets_flops=budgets_flops,
        concept_budgets_flops=tuple(4.0 * budget for budget in budgets_flops),
        sizes=SIZES,
        sizes_per_budget=5,
        training=TRAINING,
    )


SMALL = ladder((1e16, 4e16, 1.6e17, 6.4e17))
"""A day of one accelerator."""

LABORATORY = ladder((1e17, 4e17, 1.6e18, 6.4e18))
"""A day or two of a node of eight."""

PAPER = ladder((2e17, 2e18, 2e19, 2e20))
"""Budgets whose best sizes span the ladder, for a sixth of the final run's FLOPs."""

"""What the judge of tags, concepts and labels is told."""

from pydantic import NonNegativeInt, PositiveInt

from components.judging_config import AnyJudge
from model.config import Config


class JudgeConfig(Config):
    """Samples of what the stages said about chunks, judged."""

    judge: AnyJudge
    n_pairs: PositiveInt = 40
    """Drawn of each: tags, concepts of tags, labels. As many shuffled ones are judged beside."""

    bootstrap_draws: PositiveInt = 1000
    seed: NonNegativeInt = 0

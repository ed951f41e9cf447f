"""What the report shows, and how much of it."""

from pydantic import PositiveInt

from model.config import Config


class ReportConfig(Config):
    """Amounts are what a reader can take in, not what there is."""

    recipe: str
    n_concepts: PositiveInt = 20
    """Concepts listed, the largest first."""

    n_tiles: PositiveInt = 120
    """Concepts drawn as areas."""

    n_contributions: PositiveInt = 10
    """Concepts listed for one generated text, the strongest first."""

    n_sources: PositiveInt = 3
    """Training chunks listed for one generated text."""

    n_steered: PositiveInt = 6
    """Concepts whose steered texts are shown beside the unsteered ones."""

    max_text_chars: PositiveInt = 600
    """Where a shown text is cut."""

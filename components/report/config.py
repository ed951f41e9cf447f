"""What the report shows, and how much of it."""

from typing import Literal

from pydantic import NonNegativeInt, PositiveInt

from model.config import Config


class ReportConfig(Config):
    """Amounts are what a reader can take in, not what there is."""

    recipe: str
    n_concepts: PositiveInt = 20
    """Concepts listed, the largest first."""

    n_tiles: PositiveInt = 120
    """Concepts drawn as areas."""

    map: Literal["umap", "pca"] = "umap"
    """How concepts are placed on their map. `umap` keeps neighbourhoods, 38% of those of 500
    concepts where `pca` keeps 13%, and takes 8 s of CPU, nearly all of it compilation."""

    n_mapped: PositiveInt = 1000
    """Concepts on the map, the largest: 1,000 points are 0.3 MB of page."""

    n_names: NonNegativeInt = 120
    """Names written on the map, from the largest concept on, where there is room."""

    seed: NonNegativeInt = 0
    """Of the map."""

    n_contributions: PositiveInt = 10
    """Concepts listed for one generated text, known and unknown ones by turns."""

    n_sources: PositiveInt = 3
    """Training chunks listed for one generated text."""

    n_steered: PositiveInt = 6
    """Concepts whose steered texts are shown beside the unsteered ones."""

    max_text_chars: PositiveInt = 600
    """Where a shown text is cut."""

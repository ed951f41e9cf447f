"""The recipe `large_library`: `demo` with a library of 400 concepts or more.

Phrases tag thousands of chunks beside the few hundred that a language model has time for. Groups of
such tags are named after the members and titles that people chose: the model would take too long.
"""

from components.atlas.library_config import CanonicaliseConfig, NamingConfig
from components.registry.config import PromoteConfig
from components.report.config import ReportConfig
from pipelines.demo import demo
from pipelines.recipe import Recipe

_NAMING = NamingConfig(namer="medoid", vocabulary="encyclopedia", least_noun=0.55)


def large_library() -> Recipe:
    """What `demo` reads and trains, with other tags, another library, and all that follows."""
    recipe = demo()
    gates = recipe.gates
    bounds = gates.concepts.model_copy(update={"min_concepts": 400})
    return recipe.model_copy(
        update={
            "name": "large_library",
            "summary": "`demo` with 400 concepts or more: 6,000 more chunks are tagged, by phrases",
            "expected_concepts": 600,
            "gates": gates.model_copy(update={"concepts": bounds}),
            "tagging": recipe.tagging.model_copy(update={"n_by_phrases": 6_000}),
            "library": CanonicaliseConfig(
                encoder=recipe.library.encoder, sweep=(800, 1_000, 1_200, 1_400),
                min_tag_chunks=3, min_chunks=8, drop_share=0.25, naming=_NAMING,
            ),
            "registry": PromoteConfig(name="clearstory-large-library"),
            "report": ReportConfig(recipe="large_library"),
        }
    )  # fmt: skip

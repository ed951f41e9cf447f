"""Every number of the large recipes is cited, or marked as our choice."""

import pytest

from components.corpus.config import HubSource
from pipelines import provenance, recipes, sources
from pipelines.recipe import Recipe

LARGE = ("small", "one_b", "steerling_8b")
KINDS = ("paper", "release", "team's blog", "our choice: ")


@pytest.mark.parametrize("name", LARGE)
def test_every_number_has_a_source(name):
    found = provenance.provenance(recipes.named(name))
    assert len(found) > 150
    assert [leaf for leaf in found if not leaf.source.startswith(KINDS)] == []


def test_every_row_speaks_of_some_recipe():
    leaves = [
        (leaf.key, leaf.value)
        for name in LARGE
        for leaf in provenance.provenance(recipes.named(name))
    ]
    used = {
        next(i for i, row in enumerate(provenance.ROWS) if row.covers(*leaf)) for leaf in leaves
    }
    assert [row for i, row in enumerate(provenance.ROWS) if i not in used] == []


def test_a_citation_speaks_of_its_own_value_alone():
    recipe = recipes.named("steerling_8b")
    cited = {leaf.key: leaf.source for leaf in provenance.provenance(recipe)}
    assert cited["training.training.optim.beta2"].startswith("paper")
    changed = recipes.changed(recipe, ["training.training.optim.beta2=0.9"])
    with pytest.raises(ValueError, match=r"optim\.beta2 is 0\.9, and no row"):
        provenance.provenance(changed)


def test_shares_of_every_mixture_are_of_known_domains_and_sum_to_one():
    mixtures = [sources.PRETRAINING, *sources.MIDTRAINING.values()]
    mixtures += [sources.midtraining("balanced", kind) for kind in sources.NEMOTRON]
    for shares in mixtures:
        assert sum(shares.values()) == pytest.approx(1.0)
        assert set(shares) <= set(sources.DATASETS)


def test_the_chosen_mixture_is_half_real_web_text_and_two_fifths_mathematics_and_code():
    shares = sources.midtraining()
    mathematics = sum(share for domain, share in shares.items() if "mathemat" in domain)
    assert (shares["web"], shares["code"]) == (0.5, 0.2)
    assert mathematics == pytest.approx(0.2)
    assert "web-synthetic" not in shares


@pytest.mark.parametrize("name", LARGE)
def test_a_corpus_holds_text_for_every_domain_that_is_drawn(name):
    recipe: Recipe = recipes.named(name)
    held = {source.domain for source in recipe.corpus.sources if isinstance(source, HubSource)}
    drawn = {*recipe.training.domain_weights, *recipe.midtraining.domain_weights}
    assert drawn == held


def test_text_of_a_source_is_its_share_of_the_tokens_or_all_there_is():
    web, reference = sources.hub_sources(({"web": 3.0, "reference": 1.0}, 1e11))
    assert web.max_bytes == round(0.75 * 1e11 * sources.BYTES_PER_TOKEN)
    assert reference.max_bytes == round(3.7e9 * sources.BYTES_PER_TOKEN)

"""Every number of the large recipes is cited, or marked as our choice."""

import pytest

from components.corpus.config import HubSource
from components.job import Job
from components.training.config import TrainConfig
from model.tokenizer import SpecialIds
from pipelines import provenance, recipes, sources
from pipelines.recipe import Recipe

SPECIALS = SpecialIds(
    **{
        f"{name}_id": k
        for k, name in enumerate(
            (
                "eos",
                "pad",
                "bos",
                "end_of_chunk",
                "mask",
                "start_header",
                "end_header",
                "end_of_turn",
            )
        )
    }
)
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


@pytest.mark.parametrize("name", ["one_b", "steerling_8b"])
def test_the_data_sets_and_weights_of_a_recipe_are_a_mixture_that_a_job_accepts(name):
    recipe = recipes.named(name)
    for stage in (recipe.training, recipe.midtraining):
        ranks, shares = stage.ranks.ranks, stage.domain_weights
        data = sources.streamed(shares, lanes=ranks)
        told = {**stage.model_dump(), "domain_weights": {}, "data": data.model_dump()}
        config = type(stage).model_validate(told)
        job = Job(
            tokens="tokens", folder="folder", start_from="", prevalence=(),
            network=recipe.training.network.language_model(
                vocab_size=recipe.packing.vocab_size, n_known=1, specials=SPECIALS
            ),
            training=config.training, domain_weights=config.domain_weights, data=config.data,
            validation_sequences=config.validation_sequences, zero=config.zero,
        )  # fmt: skip
        again = Job.model_validate_json(job.model_dump_json()).data
        assert again.weights == shares
        named = {domain: (one.path, one.name) for domain, one in again.sources.items()}
        assert named == {d: (sources.DATASETS[d].name, sources.DATASETS[d].subset) for d in shares}


def test_a_recipe_is_mixed_by_domains_or_by_sources_and_lanes_must_fit_its_ranks():
    stage = recipes.named("one_b").training
    data = sources.streamed(stage.domain_weights, lanes=12)
    with pytest.raises(ValueError, match=r"data.sources has .* and domain_weights has"):
        TrainConfig.model_validate({**stage.model_dump(), "data": data.model_dump()})
    with pytest.raises(ValueError, match=r"12 lanes cannot be shared by 8 ranks.*try lanes=8 and"):
        TrainConfig.model_validate(
            {**stage.model_dump(), "domain_weights": {}, "data": data.model_dump()}
        )

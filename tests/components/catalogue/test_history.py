"""The account of a library adds up, and steps of one kind are told once."""

from components.catalogue.history import Step, reasons


def drop(reason):
    return Step(action="drop", names=("a", "b"), reason=reason)


def test_steps_of_one_kind_are_one_line_with_the_range_of_their_numbers():
    told = reasons([drop("on 2 chunks, fewer than 3"), drop("on 1 chunks, fewer than 3")])
    assert [(each.why, each.n_steps, each.n_lost) for each in told] == [
        ("on 1 to 2 chunks, fewer than 3", 2, 2)
    ]


def test_a_merge_costs_all_but_one_of_its_names_and_says_nothing_of_the_one_case():
    merges = [
        Step(action="merge", names=("a", "b", "c"), reason="cards 0.85 alike; now a"),
        Step(action="merge", names=("d", "e"), reason="cards 0.85 alike; now d"),
    ]
    (told,) = reasons(merges)
    assert (told.why, told.n_lost) == ("cards 0.85 alike", 3)


def test_a_step_of_another_kind_costs_nothing_and_is_told():
    (told,) = reasons([Step(action="keep apart", names=("a", "b"), reason="the model says so")])
    assert (told.action, told.n_steps, told.n_lost) == ("keep apart", 1, 0)


def test_tags_that_were_dropped_before_there_were_clusters_cost_none():
    (told,) = reasons([Step(action="drop", names=(), reason="31 tags on fewer than 2 chunks")])
    assert (told.n_steps, told.n_lost) == (1, 0)


def test_a_step_touches_a_concept_by_any_of_its_names_whatever_their_case():
    step = drop("on 2 chunks")
    assert step.touches(frozenset({"b"}))
    assert not step.touches(frozenset({"c"}))

"""`make bench`: every contest on one thread, one line each."""

import torch

from benchmarks import (
    attention,
    concept_sums,
    concept_top,
    dependence,
    generation,
    input_attribution,
    loader,
    routing,
    saving,
    training,
    vocabulary,
)

if __name__ == "__main__":
    torch.set_num_threads(1)
    for benchmark in (attention, generation, saving, loader, training):
        print(benchmark.contest(), flush=True)
    print(loader.against_arrow(), flush=True)
    print(loader.opening(), flush=True)
    for several in (concept_top, concept_sums, dependence, vocabulary, routing, input_attribution):
        for contest in several.contests():
            print(contest, flush=True)

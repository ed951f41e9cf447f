"""`make bench`: every contest on one thread, one line each."""

import torch

from benchmarks import attention, dependence, generation, loader, saving, training

if __name__ == "__main__":
    torch.set_num_threads(1)
    for benchmark in (attention, generation, dependence, saving, loader, training):
        print(benchmark.contest(), flush=True)
    print(loader.against_arrow(), flush=True)
    print(loader.opening(), flush=True)

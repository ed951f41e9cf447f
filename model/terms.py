"""The terms of the objective and what is reported beside them, by their places in vectors.

Sums, counts and weights are vectors over `Term` (suffix S everywhere): they add up over
micro-batches and ranks before one is divided by the other.
"""

from enum import IntEnum

N_NOISE_BINS = 10
"""Equal bins of the masking rate over (0, 1] that the loss is reported by."""


class Term(IntEnum):
    """Places in the vectors of sums and counts. The first six are trained, the rest reported."""

    LANGUAGE = 0
    CONCEPT = 1
    RECONSTRUCTION = 2
    INDEPENDENCE = 3
    RESPOND = 4
    EXPRESS = 5
    """The last two in steering steps, the three before them in all others."""
    NLL = 6
    CONTRIBUTION = 7
    NORM_KNOWN = 8
    """‖k̂‖ of a row; the next two: ‖û‖ and ‖ε‖ before anything is forced or dropped."""
    NORM_UNKNOWN = 9
    NORM_RESIDUAL = 10
    ACTIVE_KNOWN = 11
    """Known concepts of a row whose activation exceeds one half."""
    LABELLED = 12
    """Activation of a known concept at a voting token whose chunk is labelled with it; the next:
    of one that the chunk is not labelled with."""
    UNLABELLED = 13
    NLL_BIN_0 = 14
    """Nats of the rows masked at a rate in (0, 0.1]; the next nine: in (0.1, 0.2] and so on."""
    NLL_BIN_1 = 15
    NLL_BIN_2 = 16
    NLL_BIN_3 = 17
    NLL_BIN_4 = 18
    NLL_BIN_5 = 19
    NLL_BIN_6 = 20
    NLL_BIN_7 = 21
    NLL_BIN_8 = 22
    NLL_BIN_9 = 23


NLL_BINS = slice(Term.NLL_BIN_0, Term.NLL_BIN_0 + N_NOISE_BINS)
"""Where the bins stand in the vectors."""

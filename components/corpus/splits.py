"""Train, valid and test by the hash of a document: growth moves no document between them."""

from collections.abc import Mapping, Sequence

from components.corpus.record import hash_of

_SPLITS = ("train", "valid", "test")


def split_of(
    domains: Mapping[str, Sequence[str]], valid_share: float, test_share: float, seed: int
) -> dict[str, str]:
    """The split of each document id, given the ids of each domain.

    A split that some domain would miss gets the document whose hash lies nearest to it.
    """
    splits = {}
    for domain, doc_ids in domains.items():
        if len(doc_ids) < len(_SPLITS):
            raise ValueError(
                f"domain {domain!r} has {len(doc_ids)} document(s), but train, valid and test need "
                f"one each; give it more text or leave it out"
            )
        ranked = sorted((_place(doc_id, seed), doc_id) for doc_id in doc_ids)
        n_test = sum(place < test_share for place, _ in ranked)
        n_valid = sum(test_share <= place < test_share + valid_share for place, _ in ranked)
        n_test = min(max(1, n_test), len(ranked) - 2)
        n_valid = min(max(1, n_valid), len(ranked) - n_test - 1)
        for rank, (_, doc_id) in enumerate(ranked):
            held_out = "test" if rank < n_test else "valid"
            splits[doc_id] = held_out if rank < n_test + n_valid else "train"
    return splits


def _place(doc_id: str, seed: int) -> float:
    """A document's place in [0, 1)."""
    return int(hash_of(f"{seed}\0{doc_id}"), 16) / 16**16

"""The fixed top level that concepts are sorted under: the nearest by embedding (paper §4).

A parent that is near everything would collect whatever is odd, so a concept's cosine with a parent
is measured against what that parent has with all concepts, in standard deviations. The nearest
three are what a language model may choose from, where one checks.

Shape suffixes: K concepts   P parents
"""

import numpy as np

from components.embedding import Embedder, Floats

TOP_LEVEL: dict[str, str] = {
    "Arts and literature": "poetry, drama, theatre, novels, music, painting, film, literary style",
    "People and emotions": "people, family, love, grief, anger, friendship, character, dialogue",
    "Society, law and politics": "law, government, war, economy, education, social institutions",
    "History": "kings, empires, battles, ancient civilisations, historical events and periods",
    "Places and geography": "countries, cities, rivers, mountains, regions, climate, travel",
    "Philosophy and religion": "religion, gods, ethics, belief, metaphysics, mythology",
    "Life sciences": "animals, plants, cells, genes, evolution, ecology, anatomy",
    "Medicine and health": "disease, symptoms, therapy, abnormality, syndromes, patients",
    "Physical sciences": "physics, chemistry, astronomy, geology, energy, materials",
    "Mathematics and statistics": "algebra, functions, matrices, probability, equations, proofs",
    "Computing and software": "source code, classes, files, parsing, networks, data structures",
    "Technology and engineering": "machines, vehicles, buildings, electricity, tools, industry",
    "Everyday life": "food, clothing, sport, games, home, work, money",
    "Language and form": "grammar, vocabulary, spelling, pronouns, sentence, style of writing",
}
_CANDIDATES = 3


def candidates(cards_KD: Floats, encoder: Embedder) -> list[list[str]]:
    """The three parents nearest to each card, the nearest first."""
    names = list(TOP_LEVEL)
    top_level = encoder.embed([f"{name}: {about}" for name, about in TOP_LEVEL.items()])
    cosine_KP = cards_KD @ top_level.T
    spread_P = np.maximum(cosine_KP.std(axis=0), 1e-6)
    likeness_KP = (cosine_KP - cosine_KP.mean(axis=0)) / spread_P
    order_KP = np.argsort(-likeness_KP, axis=1, kind="stable")[:, :_CANDIDATES]
    return [[names[int(at)] for at in row] for row in order_KP]

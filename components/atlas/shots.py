"""Worked examples for the tagger, in families of like text (paper §4; prompts: method, A.1).

A small model tags code as it saw code tagged and verse as it saw verse tagged, so each passage is
shown the family it is most like. The passages are our own.
"""

import json
from dataclasses import dataclass

from components.atlas.tags import Kind


@dataclass(frozen=True)
class Shot:
    """A passage and the tags that it should get."""

    passage: str
    content: tuple[str, ...]
    document: tuple[str, ...] = ()
    tone: tuple[str, ...] = ()
    entity: tuple[str, ...] = ()

    def answer(self, *, with_kinds: bool) -> str:
        """The tags as JSON, as the schema wants them."""
        if not with_kinds:
            return json.dumps({"tags": [*self.content, *self.entity, *self.document, *self.tone]})
        kinds: dict[Kind, tuple[str, ...]] = {
            "content": self.content, "entity": self.entity,
            "document": self.document, "tone": self.tone,
        }  # fmt: skip
        return json.dumps(
            {"tags": [{"tag": tag, "type": kind} for kind, tags in kinds.items() for tag in tags]}
        )


FAMILIES: dict[str, tuple[Shot, ...]] = {
    "explanation": (
        Shot(
            "The liver is a vital organ found in vertebrates. It filters blood from the digestive "
            "tract, breaks down drugs and makes proteins important for clotting.",
            ("liver function", "anatomy", "digestion", "drug metabolism", "blood proteins"),
            document=("encyclopedia entry",),
        ),
        Shot(
            "Vasco Moura was a painter of the northern school who worked for two kings and is "
            "remembered for his portraits of merchants.",
            ("painters", "portrait painting", "royal patronage", "art history", "merchants"),
            document=("biography",),
        ),
        Shot(
            "Olten is a river port in the north of the country, founded in the 12th century. Its "
            "economy rests on shipping, steel and a university.",
            ("river port", "medieval city", "shipping", "steel industry", "higher education"),
        ),
    ),
    "drama and verse": (
        Shot(
            "DUKE. What, weeping still? Thy brother sails at dawn,\n"
            "And I, who signed the order, have not slept.",
            ("farewell", "guilt", "royal authority", "family separation"),
            document=("dramatic dialogue",),
            tone=("sorrow",),
        ),
        Shot(
            "[Enter two soldiers with torches.]\nFIRST SOLDIER. Stand! Who goes there?\n"
            "SECOND SOLDIER. A friend to the crown, and cold to the bone.",
            ("soldiers on watch", "challenge at night", "loyalty to the crown", "cold weather"),
            document=("stage directions",),
        ),
        Shot(
            "My love is like the frost upon the rose,\nThat kills the bloom it meant but to adorn.",
            ("love", "destructive love", "flowers", "winter imagery", "simile"),
            document=("verse",),
        ),
    ),
    "medicine": (
        Shot(
            "Hepatic fibrosis. Excess scar tissue in the liver, following chronic injury of the "
            "liver cells.",
            ("liver disease", "scar tissue", "chronic injury", "organ damage", "pathology"),
            document=("medical definition",),
        ),
        Shot(
            "Short metatarsal. Reduced length of one of the bones of the midfoot, visible on "
            "radiographs.",
            ("foot bones", "skeletal abnormality", "short bones", "radiography"),
            document=("medical definition",),
        ),
        Shot(
            "Absence seizure. A sudden brief loss of awareness with staring, seen on the EEG as "
            "spike and wave discharges.",
            ("epilepsy", "seizures", "loss of consciousness", "brain activity", "neurology"),
        ),
    ),
    "mathematics": (
        Shot(
            "Let G be a finite group acting on a set X. The number of orbits equals the average "
            "number of points fixed by an element of G.",
            ("group theory", "group actions", "counting orbits", "combinatorics"),
            document=("theorem",),
        ),
        Shot(
            "Return the shortest path between two nodes of a weighted graph.\n\nParameters\n\n"
            "G : Graph\nsource, target : nodes\n\nRaises NoPath if they are not connected.",
            ("graph algorithms", "shortest path", "weighted graphs", "function parameters"),
            document=("function documentation",),
        ),
        Shot(
            "The integral is computed symbolically with the Risch algorithm where possible, else "
            "numerically by quadrature.",
            ("calculus", "integration", "symbolic computation", "numerical methods"),
        ),
    ),
    "source code": (
        Shot(
            'def mean(values):\n    """Return the arithmetic mean."""\n    if not values:\n'
            "        raise ValueError('empty')\n    return sum(values) / len(values)",
            ("statistics", "arithmetic mean", "input validation", "error handling"),
            document=("function definition",),
        ),
        Shot(
            "class Session(Base):\n    user = ForeignKey(User)\n    expires = DateTimeField()\n\n"
            "    def is_valid(self, now):\n        return self.expires > now",
            ("user sessions", "database model", "foreign key", "expiry date", "authentication"),
            document=("class definition",),
        ),
        Shot(
            "from pathlib import Path\nimport json\n\ndef load(path):\n    with open(path) as f:\n"
            "        return json.load(f)",
            ("file reading", "json parsing", "module imports", "configuration loading"),
        ),
    ),
}

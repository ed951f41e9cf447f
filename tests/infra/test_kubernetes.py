"""Manifests as a cluster would read them, as far as that can be known without one."""

import copy
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import kubernetes_validate
import pytest
import yaml

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "infra" / "kubernetes"
KUSTOMIZATION = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
SCHEMAS = Path(os.environ.get("CLEARSTORY_GOLDEN", ROOT.parent / "shared" / "golden"))
QUANTITY = re.compile(r"\d+(\.\d+)?(m|[kMGTPE]i?)?")


def _objects() -> list[dict]:
    return [
        found
        for name in KUSTOMIZATION["resources"]
        for found in yaml.safe_load_all((FOLDER / name).read_text())
    ]


OBJECTS = _objects()
CUSTOM = [found for found in OBJECTS if "kubeflow.org" in found["apiVersion"]]
CORE = [found for found in OBJECTS if found not in CUSTOM]


def _name(found: dict) -> str:
    return f"{found['kind']}/{found['metadata']['name']}"


def _maps(node: object) -> Iterator[dict]:
    """Every mapping inside a manifest, at any depth."""
    if isinstance(node, dict):
        yield node
        for value in node.values():
            yield from _maps(value)
    elif isinstance(node, list):
        for value in node:
            yield from _maps(value)


def _containers() -> list[tuple[str, dict]]:
    return [
        (_name(found), container)
        for found in OBJECTS
        for node in _maps(found)
        for container in node.get("containers", []) + node.get("initContainers", [])
    ]


def test_every_file_of_the_folder_is_applied():
    files = {path.name for path in FOLDER.glob("*.yaml")} - {"kustomization.yaml"}
    assert files == set(KUSTOMIZATION["resources"])


@pytest.mark.parametrize("found", CORE, ids=_name)
def test_core_kinds_pass_strict_validation(found):
    kubernetes_validate.validate(found, "1.33", strict=True)


@pytest.mark.parametrize("found", CUSTOM, ids=_name)
def test_custom_kinds_pass_the_schemas_of_their_release(found):
    schema = _schema_of(found)
    jsonschema.validate(found, schema)
    misspelt = copy.deepcopy(found)
    misspelt["spec"]["template"]["spec"]["failurePolicies"] = {}
    with pytest.raises(jsonschema.ValidationError, match="failurePolicies"):
        jsonschema.validate(misspelt, schema)


def _schema_of(found: dict) -> dict:
    path = SCHEMAS / "kubernetes" / f"{found['kind'].lower()}s.schema.json"
    if not path.exists():
        pytest.skip(f"{path} is not there; set CLEARSTORY_GOLDEN to the folder of schemas")
    schema = json.loads(path.read_text())
    assert found["apiVersion"] == f"{schema['group']}/{schema['version']}"
    return _closed(schema["openAPIV3Schema"])


def _closed(schema: object) -> object:
    """As under `fieldValidation=Strict`: a field the schema does not name is an error."""
    if isinstance(schema, list):
        return [_closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items()}
    is_open = "additionalProperties" in schema or schema.get("x-kubernetes-preserve-unknown-fields")
    if isinstance(schema.get("properties"), dict) and schema["properties"] and not is_open:
        closed["additionalProperties"] = False
    return closed


def test_images_are_named_once_and_pinned_by_digest():
    entries = {entry["name"]: entry for entry in KUSTOMIZATION["images"]}
    assert {container["image"] for _, container in _containers()} == set(entries)
    for entry in entries.values():
        assert re.fullmatch(r"sha256:[0-9a-f]{64}", entry["digest"])
        assert "newTag" not in entry


@pytest.mark.parametrize(("owner", "container"), _containers(), ids=lambda x: str(x)[:30])
def test_each_container_asks_for_no_more_than_its_limits_and_runs_unprivileged(owner, container):
    resources = container["resources"]
    for quantity in ("cpu", "memory"):
        assert QUANTITY.fullmatch(resources["requests"][quantity])
        assert _number(resources["requests"][quantity]) <= _number(resources["limits"][quantity])
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert container["securityContext"]["capabilities"]["drop"] == ["ALL"]


def _number(quantity: str) -> float:
    units = {"m": 1e-3, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "": 1.0}
    digits, unit = re.fullmatch(r"([\d.]+)(\D*)", quantity).groups()
    return float(digits) * units[unit]


def test_no_secret_lies_here_and_each_is_read_by_reference():
    assert not [_name(found) for found in OBJECTS if found["kind"] == "Secret"]
    for found in OBJECTS:
        for node in _maps(found):
            if re.search(r"SECRET|PASSWORD|ACCESS_KEY", str(node.get("name", ""))):
                assert set(node) == {"name", "valueFrom"}, node


def test_config_maps_claims_and_volumes_that_are_referred_to_exist():
    present = {(found["kind"], found["metadata"]["name"]) for found in OBJECTS}
    data = {found["metadata"]["name"]: found.get("data", {}) for found in OBJECTS}
    for found in OBJECTS:
        for node in _maps(found):
            if "configMapKeyRef" in node:
                reference = node["configMapKeyRef"]
                assert reference["key"] in data[reference["name"]]
            if "persistentVolumeClaim" in node:
                claim = node["persistentVolumeClaim"]["claimName"]
                assert ("PersistentVolumeClaim", claim) in present
            if "containers" in node:
                volumes = {volume["name"] for volume in node.get("volumes", [])}
                for container in node["containers"]:
                    mounted = {mount["name"] for mount in container.get("volumeMounts", [])}
                    assert mounted <= volumes


def test_services_and_deployments_select_the_pods_they_mean():
    deployments = [found for found in OBJECTS if found["kind"] == "Deployment"]
    for deployment in deployments:
        labels = deployment["spec"]["template"]["metadata"]["labels"]
        assert deployment["spec"]["selector"]["matchLabels"].items() <= labels.items()
    for service in (found for found in OBJECTS if found["kind"] == "Service"):
        selected = [
            deployment
            for deployment in deployments
            if service["spec"]["selector"].items()
            <= deployment["spec"]["template"]["metadata"]["labels"].items()
        ]
        assert len(selected) == 1, _name(service)


def test_all_clients_of_the_bucket_are_told_the_same():
    data = {found["metadata"]["name"]: found.get("data", {}) for found in OBJECTS}
    storage = data["clearstory-storage"]
    launcher = yaml.safe_load(data["kfp-launcher"]["providers"])["s3"]["default"]
    assert launcher["endpoint"] == storage["endpoint"]
    assert launcher["region"] == storage["region"]
    assert launcher["disableSSL"] is not storage["endpoint"].startswith("https")
    assert data["kfp-launcher"]["defaultPipelineRoot"].startswith(f"s3://{storage['bucket']}/")
    assert launcher["credentials"]["secretRef"]["secretName"] == "clearstory-storage"


def test_training_restarts_whole_and_has_shared_memory():
    (runtime,) = [found for found in OBJECTS if found["kind"] == "TrainingRuntime"]
    job = runtime["spec"]["template"]["spec"]
    pod = job["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    assert job["failurePolicy"]["maxRestarts"] > 0
    assert job["network"]["publishNotReadyAddresses"] is True
    assert {"name": "shm", "mountPath": "/dev/shm"} in pod["containers"][0]["volumeMounts"]
    assert pod["terminationGracePeriodSeconds"] >= 60


def test_the_image_installs_nothing_when_it_runs():
    lines = (ROOT / "infra" / "images" / "Dockerfile").read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(("ENTRYPOINT", "CMD")))
    assert not [line for line in lines[start:] if "pip" in line]
    assert any("--requirement requirements.txt" in line for line in lines[:start])
    assert "USER 1000" in lines

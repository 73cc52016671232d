"""The manifests in `deploy` are as the schemas of Kubernetes say (`make test-serve-clients`)."""

from __future__ import annotations

from pathlib import Path

import kubernetes_validate
import pytest
import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"
MANIFESTS = {
    f"{file.name}: {one['kind']}": one
    for file in sorted(DEPLOY.glob("kubernetes/*.yaml"))
    for one in yaml.safe_load_all(file.read_text())
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifest_is_as_its_schema_says(name: str) -> None:
    kubernetes_validate.validate(MANIFESTS[name], "1.30", strict=True)


def test_all_kinds_are_there_and_fit_each_other() -> None:
    by_kind = {one["kind"]: one for one in MANIFESTS.values()}
    assert set(by_kind) == {"Deployment", "Service", "PodDisruptionBudget", "HorizontalPodAutoscaler"}
    pod = by_kind["Deployment"]["spec"]["template"]
    labels = pod["metadata"]["labels"]
    assert by_kind["Service"]["spec"]["selector"].items() <= labels.items()
    assert by_kind["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert (
        by_kind["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]["name"]
        == by_kind["Deployment"]["metadata"]["name"]
    )
    assert pod["spec"]["terminationGracePeriodSeconds"] > 25
    container = pod["spec"]["containers"][0]
    ports = {port["name"] for port in container["ports"]}
    assert {port["targetPort"] for port in by_kind["Service"]["spec"]["ports"]} == ports
    # A wrong manifest does not pass.
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate({**by_kind["Service"], "spec": {"ports": "none"}}, "1.30", strict=True)


def test_the_runtime_of_kserve_speaks_the_protocol() -> None:
    runtime, service = yaml.safe_load_all((DEPLOY / "kserve/mxrt.yaml").read_text())
    assert (runtime["kind"], service["kind"]) == ("ServingRuntime", "InferenceService")
    predictor = service["spec"]["predictor"]["model"]
    assert predictor["runtime"] == runtime["metadata"]["name"]
    assert predictor["protocolVersion"] in runtime["spec"]["protocolVersions"]
    assert predictor["modelFormat"]["name"] in {one["name"] for one in runtime["spec"]["supportedModelFormats"]}
    container = {**runtime["spec"]["containers"][0], "image": "mxrt"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"containers": [container]}}
    pod["spec"]["containers"][0]["name"] = "x"
    kubernetes_validate.validate(pod, "1.30", strict=True)

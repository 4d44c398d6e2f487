"""Cloud, cluster, engine and model from a resource, as far as that is certain."""

from typing import Any

import pytest

from tests.collector.otlp.builders import row_of

ZONE, LABEL = "cloud.availability_zone", "k8s.node.label.topology.kubernetes.io/zone"


@pytest.mark.parametrize(
    ("resource", "right"),
    [
        ({"cloud.platform": "aws_eks"}, ("aws", None, None)),
        ({"cloud.platform": "azure.aks"}, ("azure", None, None)),
        ({"cloud.platform": "gcp_kubernetes_engine", "cloud.provider": "own"}, ("own", None, None)),
        ({"cloud.provider": "aws", "cloud.availability_zone": "eu-west-1a"}, ("aws", "eu-west-1", "eu-west-1a")),
        ({"cloud.provider": "aws", ZONE: "us-west-2-lax-1a"}, ("aws", "us-west-2", "us-west-2-lax-1a")),
        ({"cloud.platform": "gcp_compute_engine", ZONE: "europe-west4-b"}, ("gcp", "europe-west4", "europe-west4-b")),
        ({"cloud.availability_zone": "europe-west4-b"}, (None, None, "europe-west4-b")),
        ({"k8s.node.name": "ip-10-0-1-2.eu-west-1.compute.internal"}, ("aws", "eu-west-1", None)),
        ({"host.name": "ip-10-0-1-2.ec2.internal"}, ("aws", "us-east-1", None)),
        ({"host.name": "vm1.us-central1-a.c.my-project.internal"}, ("gcp", "us-central1", "us-central1-a")),
        ({"host.name": "vm1.c.example.com.internal"}, ("gcp", None, None)),
        ({"host.name": "vm1.abc.ax.internal.cloudapp.net"}, ("azure", None, None)),
        ({"host.name": "compute.internal.example.com"}, (None, None, None)),
        ({"host.name": "aws-1"}, (None, None, None)),
        ({"cloud.provider": "aws", LABEL: "us-east-1b"}, ("aws", "us-east-1", "us-east-1b")),
    ],
)  # fmt: skip
def test_cloud_region_and_zone(resource: dict[str, Any], right: tuple[str | None, ...]) -> None:
    row = row_of(resource=resource)
    assert (row["cloud_provider"], row["cloud_region"], row["cloud_zone"]) == right


def test_a_cluster_of_ecs_is_named_in_its_arn() -> None:
    arn = "arn:aws:ecs:eu-west-1:1:cluster/prod"
    assert row_of(resource={"aws.ecs.cluster.arn": arn})["cluster"] == "prod"
    assert row_of(resource={"aws.ecs.cluster.arn": arn, "k8s.cluster.name": "k"})["cluster"] == "k"


@pytest.mark.parametrize(
    ("image", "engine"),
    [
        ("vllm/vllm-openai", "vllm"),
        ("mirror.example.com:5000/lmsysorg/sglang", "sglang"),
        ("nvcr.io/nvidia/tritonserver", "triton"),
        ("acme/not-vllm/vllm-openai-proxy", None),
    ],
)
def test_an_engine_is_known_by_its_image(image: str, engine: str | None) -> None:
    request = {"gen_ai.usage.input_tokens": 1}
    assert row_of(request, resource={"container.image.name": image})["provider"] == engine
    assert row_of(resource={"container.image.name": image})["provider"] is None, "not every span is a request"


def test_what_the_span_says_goes_before_what_its_resource_says() -> None:
    resource = {"gen_ai.request.model": "served", "gen_ai.system": "vllm"}
    said = {"gen_ai.request.model": "asked", "gen_ai.provider.name": "openai"}
    row = row_of(said, resource=resource)
    assert (row["model"], row["provider"], row["request_model"]) == ("asked", "openai", "asked")
    row = row_of({"gen_ai.latency.e2e": 1.0}, resource=resource)
    assert (row["model"], row["provider"], row["request_model"]) == ("served", "vllm", None)

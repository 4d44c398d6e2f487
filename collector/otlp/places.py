"""Where spans come from and what serves them, as far as a resource says so for certain.

A name is read only where its owner documents the form: private DNS names of AWS, GCP and Azure, zones of AWS and GCP,
images of engines.
"""

import re
from collections.abc import Mapping
from typing import Any

_PLATFORMS = re.compile(r"(aws|gcp|azure|alibaba_cloud|ibm_cloud|oracle_cloud|tencent_cloud|heroku)(?:[._].*)?")
"""`cloud.platform`: its first word is the value of `cloud.provider`."""

_HOSTS = (
    (re.compile(r".+\.ec2\.internal"), "aws", "us-east-1"),
    (re.compile(r".+\.(?P<region>[a-z0-9-]+)\.compute\.internal"), "aws", None),
    (re.compile(r".+\.(?P<zone>[a-z]+-[a-z]+\d-[a-z])\.c\.[^.]+(?:\.[^.]+)?\.internal"), "gcp", None),
    (re.compile(r".+\.c\.[^.]+(?:\.[^.]+)?\.internal"), "gcp", None),
    (re.compile(r".+\.internal\.cloudapp\.net"), "azure", None),
)
_REGION_OF_ZONE = {
    "aws": re.compile(r"([a-z]{2}(?:-[a-z]+)+-\d)(?:[a-z]|-[a-z]+-\d[a-z])"),  # eu-west-1a, us-west-2-lax-1a
    "gcp": re.compile(r"([a-z]+-[a-z]+\d+)-[a-z]"),  # europe-west4-b
}
_IMAGES = (
    ("vllm/vllm-openai", "vllm"),
    ("lmsysorg/sglang", "sglang"),
    ("huggingface/text-generation-inference", "tgi"),
    ("nvidia/tensorrt-llm", "tensorrt_llm"),
    ("nvidia/tritonserver", "triton"),
)
"""What an engine's official images are called, whatever registry they are pulled from."""


def place(found: Mapping[str, Any], rest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a resource with those that follow from others; what is stated is not overruled."""
    columns = {**_of_host(found.get("host")), **_of_platform(rest), **found}
    region = _REGION_OF_ZONE.get(columns.get("cloud_provider", ""))
    if region and "cloud_region" not in columns and (match := region.fullmatch(columns.get("cloud_zone", ""))):
        columns["cloud_region"] = match[1]
    cluster = rest.get("aws.ecs.cluster.arn")
    if "cluster" not in columns and isinstance(cluster, str) and ":cluster/" in cluster:
        columns["cluster"] = cluster.rpartition("/")[2]
    image = str(rest.get("container.image.name", ""))
    engine = next((name for part, name in _IMAGES if image == part or image.endswith("/" + part)), None)
    return {"provider": engine, **columns} if engine else columns


def _of_platform(rest: Mapping[str, Any]) -> dict[str, Any]:
    match = _PLATFORMS.fullmatch(str(rest.get("cloud.platform", "")))
    return {"cloud_provider": match[1]} if match else {}


def _of_host(host: str | None) -> dict[str, Any]:
    for pattern, provider, region in _HOSTS:
        if host and (match := pattern.fullmatch(host)):
            named = {f"cloud_{part}": value for part, value in match.groupdict().items()}
            return {"cloud_provider": provider, **({"cloud_region": region} if region else {}), **named}
    return {}

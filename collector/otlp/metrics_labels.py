"""Labels of a metric's series: from its resource, its scope and the attributes of the point.

The resource gives job (service.namespace/service.name), instance (service.instance.id), service and host (host.name),
and as labels under their own names those that tell where a number belongs: the place in Kubernetes and in a cloud, the
container, the environment, and whatever names hardware or a model. What describes the SDK, the process or the operating
system is left out: it changes with a restart or an update, and would end every series.
"""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson
from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import KeyValue

from collector.otlp.anyvalue import attributes_as_python
from collector.otlp.repair import repair_protobuf

SCOPE = "otel_scope_name"
"""Label of the instrumentation scope: two libraries may both count `requests`."""
_KEPT = frozenset(
    {
        *("k8s.cluster.name", "k8s.namespace.name", "k8s.node.name", "k8s.pod.name", "k8s.container.name"),
        *("k8s.deployment.name", "k8s.statefulset.name", "k8s.daemonset.name", "k8s.job.name"),
        *("cloud.provider", "cloud.region", "cloud.availability_zone", "cloud.account.id"),
        *("container.name", "deployment.environment.name", "deployment.environment", "host.id", "host.type"),
    }
)
_PREFIXES = ("hw.", "gpu.", "nvidia.", "amd.", "gen_ai.", "vllm.", "model.")


def target_of(resource: Mapping[str, Any]) -> dict[str, str]:
    """Return the labels that all series of a resource share."""
    texts = {name: text_of(value) for name, value in resource.items()}
    service, space = texts.get("service.name", ""), texts.get("service.namespace", "")
    labels = {
        "job": f"{space}/{service}" if space and service else service,
        "instance": texts.get("service.instance.id", ""),
        "service": service,
        "host": texts.get("host.name", ""),
    }
    labels |= {name: text for name, text in texts.items() if name in _KEPT or name.startswith(_PREFIXES)}
    return {name: text for name, text in labels.items() if text}


def point_labels(blocks: Sequence[bytes]) -> dict[str, str]:
    """Return the attributes of a point as labels; invalid UTF-8 is replaced. Raises DecodeError."""
    texts = {name: text_of(value) for name, value in attributes_as_python(_pairs(blocks)).items()}
    return {name: text for name, text in texts.items() if name and text}


def text_of(value: Any) -> str:
    """Return a value as text: true, 12, 0.5; a list or map as JSON; '' for an empty value."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return orjson.dumps(value).decode()


def _pairs(blocks: Iterable[bytes]) -> Iterable[KeyValue]:
    for block in blocks:
        try:
            yield KeyValue.FromString(block)
        except DecodeError:
            yield KeyValue.FromString(repair_protobuf(block, KeyValue.DESCRIPTOR))

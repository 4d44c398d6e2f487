"""OTLP metrics as messages in which the attributes of a point stay bytes: a known point costs one look-up.

They are the published messages (opentelemetry-proto) but for that field, so the bytes on the wire are the same.
"""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.metrics.v1 import metrics_pb2
from opentelemetry.proto.resource.v1 import resource_pb2

_FILES = (common_pb2, resource_pb2, metrics_pb2, metrics_service_pb2)
_Field = descriptor_pb2.FieldDescriptorProto


def _request_class() -> Any:
    pool = descriptor_pool.DescriptorPool()
    for module in _FILES:
        file = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        for message in file.message_type:
            if message.name.endswith("DataPoint"):
                for field in message.field:
                    if field.name == "attributes":
                        field.type = _Field.TYPE_BYTES
                        field.ClearField("type_name")
        pool.Add(file)
    name = metrics_service_pb2.ExportMetricsServiceRequest.DESCRIPTOR.full_name
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


MetricsRequest = _request_class()

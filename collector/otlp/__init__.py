"""OTLP traces in: bodies (protobuf, JSON) to rows of `spans`, and the HTTP and gRPC receivers."""

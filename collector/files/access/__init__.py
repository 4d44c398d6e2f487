"""Access logs of load balancers and proxies → spans of kind server."""

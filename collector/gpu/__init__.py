"""GPUs without an exporter: NVIDIA through NVML, AMD through amd-smi or rocm-smi."""

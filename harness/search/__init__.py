"""Bulk search over declared values: hundreds to thousands of configurations, built by CPU processes while the device
times others."""

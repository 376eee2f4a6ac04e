"""Benchmarks: one sub-command a figure. ``python -m specnb.bench NAME [--quick] [--json]``."""

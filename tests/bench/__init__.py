"""Benchmarks: run by `make bench`; what their tables say is tested in `tests/test_bench_tables.py`."""

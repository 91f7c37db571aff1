"""Benchmarks: run by `make bench`, never by a test."""

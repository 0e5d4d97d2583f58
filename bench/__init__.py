"""Benchmarks, run by `make bench`: ratios to a bare aiohttp client sending the same requests in the same run."""

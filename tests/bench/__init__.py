"""Benchmarks: what an upload costs the client, ours and others' in turn, and what a rerun costs."""

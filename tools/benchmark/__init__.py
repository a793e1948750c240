# SPDX-License-Identifier: Apache-2.0
"""The benchmark suite (docs/benchmarks.md): figures.py says what is measured, tools/bench runs it."""

"""Signatures of operators. Written by scripts/gen_stubs.py; do not edit."""

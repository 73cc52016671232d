"""Texts for users: log messages, codes of errors, progress, pages."""

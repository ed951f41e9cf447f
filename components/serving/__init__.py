"""Serving: explanations and steering over HTTP, for programs and, on one page, for people."""

"""Explaining and steering one text at a time: what the command line and the server share."""

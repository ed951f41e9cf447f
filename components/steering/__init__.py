"""Steering: change a concept, and measure what it did and what it cost."""

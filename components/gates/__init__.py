"""Whether a file obeys its contract: the only home of Great Expectations."""

"""One page that tells a whole run."""

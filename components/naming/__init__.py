"""Names: what the unknown concepts of a network are about, where that holds on held-out text."""

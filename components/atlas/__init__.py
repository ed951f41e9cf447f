"""Atlas: from text to a library of concepts, and labels for every chunk (paper §4)."""

"""What people do with a library of concepts: look things up, compare two, take one elsewhere."""

"""Values as programs give them: element types, shapes, nested lists, names of fillers."""

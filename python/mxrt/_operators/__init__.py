"""Functions and methods of operators, made from the registry."""

"""State of a thread that ``with`` blocks set: names, contexts, training, the numpy interface."""

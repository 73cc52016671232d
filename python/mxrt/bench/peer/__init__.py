"""The program of a peer's process: engines behind one interface, callers that keep them busy."""

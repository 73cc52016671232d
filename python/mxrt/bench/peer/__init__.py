"""What runs in the process of a peer: engines behind one interface, callers that keep them busy."""

"""Models of 8-bit integers within a budget of accuracy: ``mx.quantize``."""

CachedOp=None

"""Parts of executors and blocks: arrays to bind, groups, layers, results in between."""

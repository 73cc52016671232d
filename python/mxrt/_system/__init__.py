"""Services of the operating system: threads, locks, temporary folders, files written whole."""

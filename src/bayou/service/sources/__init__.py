"""Sources that the service follows by itself: a growing file, standard input, a stream of Redis."""

"""What runs beside the web process: the engine loop, the evaluation worker, their supervisor, the git mirror."""

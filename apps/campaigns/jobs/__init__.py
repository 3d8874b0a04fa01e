"""The job queue: rows with leases and fencing tokens, and the workers that take them."""

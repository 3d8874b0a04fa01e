"""What the review pages show: reads only, no rules."""

"""What the home and system pages show: reads only, no rules."""

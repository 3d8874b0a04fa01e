"""What the campaign pages show: reads only, no rules."""

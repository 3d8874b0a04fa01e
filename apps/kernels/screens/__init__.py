"""What the kernel, verdict, operator and slot pages show: reads only, no rules."""

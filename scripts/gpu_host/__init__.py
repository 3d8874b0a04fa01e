"""The product driven from outside: a site of its own, people over HTTP, and what they check."""

"""Static checks: an allowlist over the syntax tree, kernel bodies included. A tripwire; the sandbox is the wall."""

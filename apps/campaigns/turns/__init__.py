"""Turns of language models: what each was asked, what it answered, what that cost."""

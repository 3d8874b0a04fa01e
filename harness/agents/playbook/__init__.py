"""The playbook: scripted strategies, no LLM. Each transforms the incumbent and predicts its gain from the profile."""

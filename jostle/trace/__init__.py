"""Writes and reads the event stream (`jsonl`), and renders it as text (`summary`, `tree`, `budget`) and pages (`html`).

The renderings are pure functions from a list of events to text: they read no file, know no terminal, and see nothing
but what the stream holds, which is public or released.
"""

"""The event stream kept and read again (`jsonl`), and its renderings as text (`summary`, `tree`, `budget`).

The renderings are pure functions from a list of events to text: they read no file, know no terminal, and see nothing
but what the stream holds, which is public or released.
"""

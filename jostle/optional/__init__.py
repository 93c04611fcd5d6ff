"""Measurements that rest on more code than `privacy` and `engine`, for programs that ask for them.

Each is loaded when a program first calls it, and named in `docs/privacy/guarantee.md` with what it rests on. A
program that calls none of them rests on none of it.
"""

"""The commands, each in a file named as it is typed: its options, one call, its answer.

What a command does stands below, by subject; :mod:`shared` holds options that several have, and
what is said on standard error.
"""

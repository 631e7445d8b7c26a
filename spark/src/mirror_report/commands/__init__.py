"""The commands, each in a file named as it is typed: its options, one call, its answer.

``add_options`` adds what may be typed after the command's name. ``answer`` takes the options and
returns an :class:`~mirror_report.render.Answer`, or raises a ``ReportError``: there is none.

What a command does stands below, by subject; :mod:`shared` holds options that several have, and
messages on standard error.
"""

"""The commands, each in a file named as it is typed, and what several of them share.

A command's file holds its options, its question and its answer. Shared are: which flows it is about
(:mod:`flows`), common options (:mod:`options`), progress (:mod:`progress`), measuring lag
(:mod:`measure_lag`), checking a flow (:mod:`check_flow`), its topics and groups (:mod:`survey`,
:mod:`observe_groups`).
"""

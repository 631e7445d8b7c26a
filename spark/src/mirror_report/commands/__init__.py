"""The commands, each in a file named as it is typed, and what several of them share.

A command's file holds its options, its question and its answer. Shared are options, the flows a
command is about and progress (:mod:`shared`), measuring the lag of one flow (:mod:`measure_flow`),
and topics and groups of the flows (:mod:`survey`).
"""

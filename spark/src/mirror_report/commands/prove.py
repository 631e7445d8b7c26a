"""``prove``: whether a topic at rest is whole on both sides; remembers nothing."""

from argparse import ArgumentParser, Namespace

from mirror_report.commands import shared
from mirror_report.proof.prove import prove_topics
from mirror_report.render import Answer, formats


def add_options(parser: ArgumentParser) -> None:
    """Add the options of ``prove``."""
    parser.add_argument("--flow", metavar="NAME", required=True, help="the flow that mirrors them")
    parser.add_argument("--topic", metavar="NAME", help="only this one, by its name on either side")
    parser.add_argument(
        "--sha256", action="store_true",
        help="compare record by record by SHA-256: also a mirror that forges records is found",
    )  # fmt: skip
    shared.json(parser, "what was found as one JSON object")


def answer(options: Namespace) -> Answer:
    """Prove the topics that are at rest.

    :raises ReportError: a cluster cannot be read, Spark fails, or the topic is not the flow's.
    """
    return formats.with_verdict(
        prove_topics(
            shared.settings(options),
            options.flow,
            options.topic,
            shared.show_progress,
            sha256=options.sha256,
        )
    )

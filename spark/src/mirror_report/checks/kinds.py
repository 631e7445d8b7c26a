"""Every kind of finding: its severity, its meaning and its cure.

What is ``critical`` here makes exit status 2. ``docs/generate.py`` writes the table of
``docs/report/findings.md`` from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from mirror_report.model import Severity


@dataclass(frozen=True)
class Kind:
    """One kind of finding.

    :param severity: the usual one; a finding may have another.
    :param meaning: the fact it states; ``cure``: what to do, in Markdown.
    """

    severity: Severity
    meaning: str
    cure: str


TABLE: Mapping[str, Kind] = {
    # records
    "missing": Kind(
        "critical",
        "records of the source are not on the target",
        "The samples name partition and offset: find out who deleted there. With MirrorMaker "
        "1 the finding has the commands that mirror again from there; the records in between "
        "arrive twice.",
    ),
    "corrupt_value": Kind(
        "critical",
        "records arrived with another value",
        "The finding has the commands that show one record on both sides. Find who writes "
        "beside the mirror, or what converts on the way.",
    ),
    "corrupt_headers": Kind(
        "critical",
        "records arrived with other headers",
        "The finding has the commands that show one record on both sides. Find who writes "
        "beside the mirror, or what converts on the way.",
    ),
    "moved": Kind(
        "critical",
        "records arrived in another partition (MirrorMaker 2)",
        "Find who writes beside the mirror, or chooses partitions instead of it.",
    ),
    "reordered": Kind(
        "critical",
        "records come after others that they preceded; warning for MirrorMaker 1, by key",
        "Find a second writer, or producer settings that let batches overtake each other.",
    ),
    "truncated": Kind(
        "critical",
        "the source dropped records before they were mirrored",
        "The records are gone. Raise the retention of the source or mirror faster, then accept "
        "the loss with the command of the finding.",
    ),
    "possible_loss": Kind(
        "warning",
        "the source dropped records that may not have been mirrored before; no more than a bound",
        "As `truncated`, but the mirror was at work, so the number is a bound: compare both "
        "sides with `mirror-report run` first.",
    ),
    "reset": Kind(
        "critical",
        "a topic was deleted and created again",
        "If it was intended: `sudo mirror-report baseline --flow <flow> --topic <topic> --renew`. "
        "If the target's topic was created again, the finding has the commands that mirror it "
        "again.",
    ),
    "rewind": Kind(
        "critical",
        "a log lost its newest records; others may have come at their offsets",
        "Look for an unclean leader election (`unclean.leader.election.enable`, "
        "`min.insync.replicas`, `acks` of the producers). The topic is compared again; what the "
        "mirror passed over is `missing` then.",
    ),
    "deleted_early": Kind(
        "critical",
        "records left the target before its retention allows",
        "Find out who deletes there: `kafka-delete-records.sh`, a retention set for an hour, "
        "a lost broker.",
    ),
    "differs": Kind(
        "critical",
        "digests differ; a warning where the target only holds more",
        "Run `mirror-report run` where both clusters can be read: it names the records that "
        "differ.",
    ),
    "duplicate": Kind(
        "warning",
        "records arrived more than once",
        "Normal after a crash of the mirror. Otherwise look for a second mirror of the same "
        "topics.",
    ),
    "extra": Kind(
        "warning",
        "records on the target that the source never had",
        "Find the other producer and take its WRITE permission away.",
    ),
    "altered_timestamp": Kind(
        "warning",
        "records arrived with another timestamp",
        "Look at `message.timestamp.type` of the target's topic, and for a message handler.",
    ),
    "repaired": Kind(
        "ok",
        "records that were missing are on the target by now, equal to the timestamp where "
        "timestamps are compared; reported once",
        "Nothing, if the mirror was set back to them or they were written again on purpose. "
        "Otherwise find the other producer and take its WRITE permission away.",
    ),
    "expired": Kind(
        "ok",
        "records left the target by its retention before they were compared",
        "Nothing, unless the target should keep records longer: raise its `retention.ms`.",
    ),
    "unverifiable": Kind(
        "warning",
        "records that can no longer be compared",
        "Run the report more often than the shortest retention. If the finding names an "
        "offset, let that producer write timestamps in milliseconds.",
    ),
    "skipped": Kind(
        "warning",
        "content that is not compared, such as of a topic the source has lost",
        "Prove the topic at rest (`mirror-report prove`), or leave the records out with a new "
        "baseline. Nothing, if the topic was removed on purpose.",
    ),
    "not_judged": Kind(
        "warning",
        "records of minutes that stay open were not judged for losses",
        "Wait for the next runs: they go on where this one ended. If it stays, raise "
        "`mirror_report_max_bytes` and `mirror_report_deadline_seconds`, let both clusters keep "
        "records for longer, or prove the topic at rest (`mirror-report prove`).",
    ),
    "coverage": Kind(
        "warning",
        "the verified share of the records due is below its bound",
        "Follow the other findings. Without any, run again or raise the budget.",
    ),
    "backlog": Kind(
        "warning",
        "records are due and were left for the next run",
        "It shrinks from run to run. Otherwise raise `mirror_report_max_bytes`, "
        "`mirror_report_max_records`, `mirror_report_deadline_seconds` or "
        "`mirror_report_max_lag_records`.",
    ),
    "offset_shift": Kind(
        "warning",
        "offsets of source and target drifted apart (MirrorMaker 2)",
        "More records on the target: normal after a crash, else look for another writer. "
        "Offsets passed over: compare the retention of the topic with how long the mirror was "
        "away.",
    ),
    "not_proved": Kind(
        "warning",
        "a topic was not at rest when it should be proved",
        "Stop the producers, wait until `mirror-report lag` shows no lag, and prove again.",
    ),
    "nothing_seen": Kind(
        "warning",
        "no record was seen since the baseline, so nothing is proved",
        "Produce a record. If there are records, the flow's `topics` do not match.",
    ),
    # the mirror
    "stopped": Kind(
        "critical",
        "records wait and nobody mirrors them",
        "Run `journalctl -u <instance> -n 100` on the mirror's host; `docs/operations.md` "
        "shows what failures look like.",
    ),
    "not_running": Kind(
        "warning",
        "nothing is known to wait, and no process of the mirror is at work, or none on this host "
        "while others are; or a connector is paused, stopped or gone",
        "If it was not stopped on purpose, run `journalctl -u <instance> -n 100` on the mirror's "
        "host, or the finding's request to Kafka Connect.",
    ),
    "restarting": Kind(
        "critical",
        "the process of a mirror on this host ends again and again; a warning while one runs",
        "The finding names the cause if the journal does. The mirror starts again by itself when "
        "it is mended, from systemd 254 on after longer and longer pauses.",
    ),
    "hindered": Kind(
        "critical",
        "why a mirror on this host stands still, by its journal, or by a login as it does",
        "Mend what the finding names: login, certificate, permission, the name of a topic, or a "
        "record that the target refuses.",
    ),
    "undeclared": Kind(
        "warning",
        "something mirrors that the inventory does not name any more",
        "Declare it with `state: absent` and run its play, or put it back into the inventory.",
    ),
    "stalled": Kind(
        "critical",
        "records wait, the mirror runs and does not move",
        "Run `journalctl -u <instance> -n 100` on the mirror's host; `docs/operations.md` "
        "shows what failures look like.",
    ),
    "lagging": Kind(
        "warning",
        "lag is above its bound",
        "See whether the position moves (`mirror-report lag`). Then add streams, tasks or "
        "hosts (`docs/sizing.md`), or raise the bound.",
    ),
    "rewound": Kind(
        "warning",
        "the position went back, so duplicates follow",
        "Records from there on arrive twice. If nobody reset the position on purpose, read "
        "the journal of the mirror.",
    ),
    "hung_transaction": Kind(
        "warning",
        "a transaction on the source stays open, so readers of committed records wait",
        "If its producer is gone, end the transaction with the command of the finding.",
    ),
    "heartbeat": Kind(
        "warning",
        "the newest heartbeat on the target is old (MirrorMaker 2)",
        "Run the finding's command twice. If the source's heartbeats grow, read the journal "
        "of the mirror; if not, nobody writes them.",
    ),
    "task_failed": Kind(
        "critical",
        "a connector or a task of MirrorMaker 2 has failed",
        "Read the journal for the cause, then restart the unit.",
    ),
    # topics and configuration
    "topic_missing": Kind(
        "critical",
        "a mirrored topic is missing on the target",
        "Create the topic with the finding's command, or run `playbooks/mirrormaker.yml`, "
        "which creates mirrored topics.",
    ),
    "no_topics": Kind(
        "warning",
        "no topic of the source matches",
        "Correct `topics` of the flow, create the topic, or grant DESCRIBE: Kafka hides what "
        "an identity may not see.",
    ),
    "partitions_fewer": Kind(
        "warning",
        "the target has fewer partitions than the source; critical for MirrorMaker 2",
        "Add partitions with the finding's command. Records that are already there keep their "
        "partition.",
    ),
    "compact_null_keys": Kind(
        "warning",
        "the target is compacted and refuses records without key",
        "Set the setting on the target with the finding's command.",
    ),
    "message_size": Kind(
        "warning",
        "the target accepts only smaller records than the source",
        "Set the setting on the target with the finding's command.",
    ),
    "timestamp_type": Kind(
        "warning",
        "the target replaces the records' timestamps",
        "Set the setting on the target with the finding's command.",
    ),
    "timestamp_limit": Kind(
        "warning",
        "the target accepts a narrower range of timestamps",
        "Set the setting on the target with the finding's command.",
    ),
    "retention": Kind(
        "warning",
        "the target keeps records for a shorter time",
        "Set the setting on the target with the finding's command.",
    ),
    "same_cluster": Kind(
        "critical",
        "source and target are one cluster",
        "Correct `bootstrap_servers` of one of the two clusters.",
    ),
    "regex_without_auto_creation": Kind(
        "critical",
        "a topic that matches later would block the mirror: the target creates no topics; "
        "unknown if that could not be asked",
        "Name the topics one by one, let the target create topics (and the identity ask whether "
        "it does: DESCRIBE_CONFIGS), or accept it in `mirror_accept` and create topics in time.",
    ),
    "takeover": Kind(
        "critical",
        "the target holds records the mirror has no position for",
        "Stop the other mirror and give this one its positions, or accept it in "
        "`mirror_accept` and take a new baseline.",
    ),
    "broker_too_old": Kind(
        "warning",
        "a cluster's release does not tell something; critical if the mirror or the report cannot "
        "work with it",
        "Upgrade the cluster, or do what the finding says: [old clusters](old-clusters.md).",
    ),
    "replication_factor": Kind(
        "critical",
        "more replicas are asked for than there are brokers",
        "Lower it, or leave it out: it then follows the number of brokers.",
    ),
    "internal_topic": Kind(
        "critical",
        "a topic MirrorMaker 2 keeps for itself is not as it needs it",
        "Ask who made it or changed it: the mirror makes it compacted where there is none. Only "
        "its owner knows whether it holds positions of a mirror: neither change nor delete it.",
    ),
    "name_collides": Kind(
        "critical",
        "the target cannot create a topic beside one that differs in `.` and `_` alone",
        "Delete it on the source, or run `playbooks/mirrormaker.yml` (or `kafka-connect.yml`), "
        "which leaves it out unless the flow names it.",
    ),
    "name_too_long": Kind(
        "warning",
        "a topic is left out because the name of its copy would be too long",
        "Give it a shorter name, or list it in `topics_exclude`.",
    ),
    "foreign_topic": Kind(
        "warning",
        "a topic of the target held records that the flow did not copy before the source had any",
        "Ask who made the source's topic; list it in `topics_exclude` unless they belong together. "
        "If they do, the finding's command takes them so. MirrorMaker 2 sets the target's as the "
        "source's is set.",
    ),
    "control_access": Kind(
        "warning",
        "others than the mirror may write or change where it keeps its state, or read its workers' "
        "key; ok on an existing Connect cluster, of which nobody knows who its workers are",
        "Take the permission away, or deny it: [permissions](../connect.md#permissions). On an "
        "existing Connect cluster ask its owner: whoever takes it from the workers stops them.",
    ),
    "control_record": Kind(
        "warning",
        "somebody else wrote where the mirror keeps its state; said for a day",
        "Find out who may write there, and take that away. Neither change nor delete the topic.",
    ),
    "missing_permission": Kind(
        "critical",
        "the mirror's identity lacks a permission; unknown for another identity",
        "Run the `kafka-acls.sh` command of the finding as an administrator.",
    ),
    "no_groups": Kind(
        "warning",
        "no consumer group of the source matches, or none was examined, or none is on the target",
        "Correct `consumer_groups`, or grant DESCRIBE on the groups. MirrorMaker 1 takes no "
        "groups along: set their offsets by hand before they move.",
    ),
    "orphaned": Kind(
        "warning",
        "a topic was deleted on the source; what was mirrored is left",
        "Keep the target's topic as long as somebody reads it, then delete it.",
    ),
    "regex_disagreement": Kind(
        "warning",
        "the mirror and the report do not agree on which topics the flow selects",
        "After a change of `topics` run `playbooks/mirrormaker.yml` and "
        "`playbooks/report.yml`. Otherwise name the topic literally.",
    ),
    "group_skip": Kind(
        "critical",
        "a group that failed over now would never read some records",
        "Put the group back with the finding's command before it moves, and find out who "
        "commits for it on the target.",
    ),
    "group_reread": Kind(
        "warning",
        "a group that failed over now would re-read more than its bound",
        "Reset the group with the finding's command before a planned move, or let it commit "
        "more often.",
    ),
    "group_unmapped": Kind(
        "warning",
        "a group's position has no counterpart on the target",
        "Let the group catch up on the source. If it has to move now, reset it to the "
        "beginning with the finding's command.",
    ),
    "group_stale": Kind(
        "warning",
        "a group's position on the target no longer follows",
        "Look for `MirrorCheckpoint` in the journal of the mirror. Restarting the unit starts "
        "its task again.",
    ),
    "group_unknown": Kind(
        "warning",
        "whether a group would skip records is not known",
        "Run `mirror-report groups` again. To be safe, reset the group with the finding's command.",
    ),
    "idle_tasks": Kind(
        "warning",
        "more streams or tasks than partitions",
        "Lower `num_streams` or `tasks_max`, or add partitions on both sides.",
    ),
    "distance": Kind(
        "warning",
        "a cluster is farther or nearer than the mirror's properties are made for",
        "Set `distance` of the instance, which sizes fetches and buffers.",
    ),
    "sysconfig_drift": Kind(
        "warning",
        "the mirror's environment file differs from the model",
        "A hand edit of `/etc/sysconfig/<instance>` lasts until the next "
        "`playbooks/mirrormaker.yml`: put it into the inventory.",
    ),
    "certificate_expiry": Kind(
        "warning",
        "a certificate ends soon; critical if it has ended",
        "Renew the certificate; the finding says where it belongs.",
    ),
    "permission_unknown": Kind(
        "warning",
        "whether a permission is there could not be asked",
        "Run the `kafka-acls.sh` command of the finding as an administrator; some permissions "
        "cannot be asked.",
    ),
    "not_checked": Kind(
        "warning",
        "something was left out because it could not be examined",
        "Nothing, or grant what the finding names.",
    ),
    # what we could not find out
    "unreachable": Kind(
        "unknown",
        "a cluster does not answer",
        "Correct `kafka_clusters`, the password or the ACL that the message names, then run "
        "`playbooks/report.yml`.",
    ),
    "authentication": Kind(
        "unknown",
        "a cluster refuses our identity",
        "Correct `kafka_clusters`, the password or the ACL that the message names, then run "
        "`playbooks/report.yml`.",
    ),
    "permission": Kind(
        "unknown",
        "our identity lacks a permission",
        "Correct `kafka_clusters`, the password or the ACL that the message names, then run "
        "`playbooks/report.yml`.",
    ),
    "unreadable": Kind(
        "unknown",
        "a topic could not be read, and not for want of a permission",
        "See with `kafka-topics.sh --describe` whether the topic's partitions have leaders.",
    ),
    "unknown_lag": Kind(
        "unknown",
        "the position or the offsets of a partition are not known",
        "Grant the report DESCRIBE and READ on the topic, and access to the positions. A flow "
        "that starts with `latest` is known after its first commit.",
    ),
    "state": Kind(
        "unknown",
        "the report's own state cannot be used",
        "Follow the message: wait for the run that holds the state, or start again with the "
        "command it names.",
    ),
    "parity_unavailable": Kind(
        "unknown",
        "content was not compared",
        "Follow the message, then run the report again.",
    ),
    "outdated": Kind(
        "unknown",
        "the last report is too old to say how the mirror is",
        "`systemctl list-timers mirror-report.timer` names the next run. If there is none, "
        "run `playbooks/report.yml`. `journalctl -u mirror-report` says why runs fail.",
    ),
    "internal": Kind(
        "unknown",
        "the report itself failed",
        "Follow the message. If it names no cure, `mirror-report --debug <command>` shows "
        "where it happened.",
    ),
}

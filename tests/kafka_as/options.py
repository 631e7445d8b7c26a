"""Where Kafka's library keeps the options of each script that kafka-as runs."""

from __future__ import annotations

TOOLS = "org/apache/kafka/tools"
OPTIONS = {
    "kafka-acls.sh": "AclCommand$AclCommandOptions",
    "kafka-broker-api-versions.sh": "BrokerApiVersionsCommand$BrokerVersionCommandOptions",
    "kafka-client-metrics.sh": "ClientMetricsCommand$ClientMetricsCommandOptions",
    "kafka-cluster.sh": "ClusterTool",
    "kafka-configs.sh": "kafka/admin/ConfigCommand$ConfigCommandOptions",
    "kafka-console-consumer.sh": "consumer/ConsoleConsumerOptions",
    "kafka-console-producer.sh": "ConsoleProducer$ConsoleProducerOptions",
    "kafka-console-share-consumer.sh": "consumer/ConsoleShareConsumerOptions",
    "kafka-consumer-groups.sh": "consumer/group/ConsumerGroupCommandOptions",
    "kafka-consumer-perf-test.sh": "ConsumerPerformance$ConsumerPerfOptions",
    "kafka-delegation-tokens.sh": "DelegationTokenCommand$DelegationTokenCommandOptions",
    "kafka-delete-records.sh": "DeleteRecordsCommand$DeleteRecordsCommandOptions",
    "kafka-e2e-latency.sh": "EndToEndLatency$EndToEndLatencyCommandOptions",
    "kafka-features.sh": "FeatureCommand",
    "kafka-get-offsets.sh": "GetOffsetShell$GetOffsetShellOptions",
    "kafka-groups.sh": "GroupsCommand$GroupsCommandOptions",
    "kafka-leader-election.sh": "LeaderElectionCommand$LeaderElectionCommandOptions",
    "kafka-log-dirs.sh": "LogDirsCommand$LogDirsCommandOptions",
    "kafka-metadata-quorum.sh": "MetadataQuorumCommand",
    "kafka-producer-perf-test.sh": "ProducerPerformance",
    "kafka-reassign-partitions.sh": "reassign/ReassignPartitionsCommandOptions",
    "kafka-share-consumer-perf-test.sh": "ShareConsumerPerformance$ShareConsumerPerfOptions",
    "kafka-share-groups.sh": "consumer/group/ShareGroupCommandOptions",
    "kafka-streams-application-reset.sh": "StreamsResetter$StreamsResetterOptions",
    "kafka-streams-groups.sh": "streams/StreamsGroupCommandOptions",
    "kafka-topics.sh": "TopicCommand$TopicCommandOptions",
    "kafka-transactions.sh": "TransactionsCommand",
    "kafka-verifiable-consumer.sh": "VerifiableConsumer",
    "kafka-verifiable-producer.sh": "VerifiableProducer",
    "kafka-verifiable-share-consumer.sh": "VerifiableShareConsumer",
}

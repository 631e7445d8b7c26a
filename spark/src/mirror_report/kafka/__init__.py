"""The only rooms that talk to Kafka for positions, offsets and topics."""

"""The report's configuration: a YAML document into typed settings."""

"""What the tests of the scenarios use: hosts, clusters, producers, and runs of the playbooks."""

"""Writing on a host, shared by modules, so that no other user can lead root astray."""

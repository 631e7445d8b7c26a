"""What the inventory says about clusters, flows and instances, and what follows from it.

Pure functions over plain data: no file, no network, no host. The filter plugin of the role is the
only caller that knows Ansible.
"""

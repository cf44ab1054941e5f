"""A small cluster on one machine: booted systemd-nspawn hosts on a bridge. Standard library only."""

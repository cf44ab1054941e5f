"""Sites: the folders below ``site-configs/`` and what onboarding writes into them."""

from plumbline.site.site import folder, load, load_all, names, partition, references

__all__ = ["folder", "load", "load_all", "names", "partition", "references"]

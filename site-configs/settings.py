"""ReFrame configuration: every folder beside this file that holds a site.yaml is a system.

Partitions come from site.yaml, environments from the manifests of the installed stacks; nothing is written by hand.
"""

from plumbline.measure.reframe.settings import configuration

site_configuration = configuration()

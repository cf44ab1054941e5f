/* What the PCIe link of a device can carry, as sysfs shows it. */
#ifndef PLUMB_KERNEL_PCI_LINK_H
#define PLUMB_KERNEL_PCI_LINK_H

/* MB/s of data in one direction at the present speed and width of the link of the device with this PCI
 * address; 0: unknown. Headers of packets are not subtracted. */
double pci_link_mbyte_s(const char *address);

#endif

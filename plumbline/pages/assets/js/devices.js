// GPUs, network cards and NVMe drives of the nodes, and the ways between them.

function deviceSection() {
  const title = 'Devices';
  if (!data.devices.length) {
    return section('devices', title, null, h('p', null, 'The records know no GPU, network card or NVMe drive.'));
  }
  return section(
    'devices',
    title,
    'What each node has on PCI, what it is near to, and the way between each two.',
    data.devices.map(deviceParts),
  );
}

function deviceParts({ hosts, rows, ways, words }) {
  const columns = ['device', 'address', 'vendor and device', 'names', 'near to', 'link'];
  const on = hosts.join(', ');
  return [
    h('h3', null, on),
    table(
      `Devices of ${on}`,
      columns.map((name, place) => ({ title: name, head: place === 0 })),
      rows.map((row) => row.map((text) => text || DASH)),
    ),
    rows.length > 1 && [
      table(
        `Ways between devices of ${on}`,
        [{ title: '', head: true }, ...rows.map(([label]) => ({ title: label }))],
        ways.map((row, place) => [rows[place][0], ...row]),
      ),
      bullets(
        words.map(([word, meaning]) => `${word}: ${meaning}`),
        true,
      ),
    ],
  ];
}

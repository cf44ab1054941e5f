// Collective operations: what three ways of timing find for the same operation, side by side.

function collectiveSection() {
  if (!data.collectives) {
    return absent('collectives', 'Collectives', 'reframe -c reframe-tests -r -n collective_start');
  }
  const { ways, rows } = data.collectives;
  const operations = [...new Set(rows.map((row) => row.operation))];
  const place = h('div');
  const show = (name) => place.replaceChildren(collectiveTable(rows.filter((row) => row.operation === name), name));
  show(operations[0]);
  return section(
    'collectives',
    'Collectives',
    'The same operation by each way of timing it. They measure different things: none is a bound of another.',
    bullets(ways, true),
    h('div', { class: 'filters' }, choice('Operation', operations, operations[0], show)),
    place,
  );
}

function collectiveTable(rows, name) {
  const time = (found) => (found ? opener(data.entries[found.entry], digits(found.time)) : DASH);
  const number = (title, unit) => ({ title, unit, number: true });
  return table(
    `${name}: median over the launches`,
    [
      { title: 'size', head: true, number: true },
      { title: 'stack' },
      { title: 'placement' },
      number('common start', 'us'),
      number('interval', 'us'),
      number('in place', 'us'),
      number('OSU', 'us'),
      number('IMB', 'us'),
      number('invalid', '%'),
      number('clock error', 'us'),
    ],
    rows.map(({ bytes: size, stack, placed, found }) => [
      size ? bytes(size) : DASH,
      stack,
      placed,
      time(found.collective),
      `${digits(found.collective.low)} … ${digits(found.collective.high)}`,
      time(found.in_place),
      time(found.osu),
      time(found.imb),
      digits(found.collective.invalid),
      digits(found.collective.clock_error),
    ]),
  );
}

// Profiles: what the ranks of a program sent to one another and over what, and in which calls and sizes their time went.

function profileSection() {
  const title = 'Profiles';
  if (!data.profiles.length) return absent('profiles', title, 'plumb profile heat1d_steps --stack STACK');
  const body = h('div');
  const show = (number) => body.replaceChildren(...profileParts(data.profiles[number]));
  show(0);
  return section(
    'profiles',
    title,
    'What programs spend in MPI: the newest profile of each test and stack at this site. A profiled launch is no measurement.',
    h(
      'div',
      { class: 'filters' },
      choice(
        'Profile',
        data.profiles.map((one, number) => ({
          key: String(number),
          label: `${one.name}, ${one.stack.split(':')[0]}, ${one.record}`,
        })),
        '0',
        (number) => show(Number(number)),
      ),
    ),
    body,
  );
}

function profileParts(one) {
  const [low, middle, high] = one.share.map((value) => digits(value));
  return [
    facts('Profile', [
      ['stack', one.stack],
      ['placement', one.placement],
      ['measured', time(one.time)],
      ['wall time', `${digits(one.wall)} s`],
      ['in MPI', `${middle} % of it (${low} to ${high} % by rank)`],
    ]),
    copied('command', one.command),
    one.missing.length ? bullets(one.missing, true) : null,
    h(
      'div',
      { class: 'pictures' },
      one.pairs.length ? pairsPicture(one).element : h('p', null, 'No message from one rank to another.'),
      sizesPicture(one).element,
    ),
    trafficTable(one),
    mapTable(one),
    callTable(one),
  ].filter(Boolean);
}

/** What to divide bytes by, and the unit then. */
function bytesScale(values) {
  const largest = most(values);
  return largest >= 1e9 ? [1e9, 'GB'] : largest >= 1e6 ? [1e6, 'MB'] : largest >= 1e3 ? [1e3, 'kB'] : [1, 'B'];
}

function pairsPicture(one) {
  const scale = bytesScale(one.pairs.map((cell) => cell[3]));
  return picture({
    title: 'Bytes from rank (row) to rank (column)',
    about: `${scale[1]} sent, over the proven rank map${one.morePairs ? `; ${plural(one.morePairs, 'pair')} with fewer bytes left out` : ''}.`,
    height: (width) => Math.min(width + 40, Math.max(300, 102 + one.ends.length * 40)),
    values: () => pairsTable(one),
    option: () => pairsOption(one, scale),
  });
}

function className(one, kind) {
  return kind === null ? 'unknown' : one.classes[kind];
}

function pairsOption(one, [divisor, unit]) {
  const names = one.ends.map(([number]) => String(number));
  const place = new Map(names.map((name, number) => [name, number]));
  const ends = { type: 'category', data: names, splitLine: { show: false }, axisLine: { show: false } };
  const points = one.pairs.map((cell) => ({
    value: [place.get(String(cell[1])), place.get(String(cell[0])), cell[3] / divisor],
    cell,
  }));
  return heatMap({
    across: axis('to rank', { ...ends, nameGap: 24 }),
    down: axis('from rank', { ...ends, inverse: true, nameGap: 36 }),
    left: 56,
    points,
    unit,
    labels: names.length <= 8,
    size: names.length,
    hover: ({ data: { cell } }) =>
      lines(`rank ${cell[0]} to rank ${cell[1]}`, [
        ['inside', className(one, cell[4])],
        ['messages', cell[2]],
        ['bytes', cell[3]],
        ['CPUs', [cell[0], cell[1]].map((end) => one.ends[place.get(String(end))]?.[2] ?? '?').join(' to ')],
      ]),
  });
}

/** A heat map whose colours begin at nothing: a cell without a point has none. */
function heatMap({ across, down, left, points, unit, labels, size, hover }) {
  const values = points.map((point) => point.value[2]);
  return {
    grid: { left, right: 16, top: 10, bottom: 92 },
    xAxis: across,
    yAxis: down,
    visualMap: { ...matrixScale(values, unit), min: 0, text: [`${digits(most(values))} ${unit}`, '0'] },
    tooltip: tooltip(hover),
    series: [
      {
        type: 'heatmap',
        data: points,
        label: { show: labels, formatter: ({ value }) => digits(value[2]), color: 'inherit' },
        itemStyle: { borderColor: colour('page'), borderWidth: size <= 64 ? 1 : 0 },
        emphasis: { itemStyle: { borderColor: colour('text'), borderWidth: 2 } },
        progressive: 0,
      },
    ],
  };
}

function pairsTable(one) {
  return table(
    'Every pair of ranks',
    [
      { title: 'from, to', head: true },
      { title: 'inside' },
      { title: 'messages', number: true },
      { title: 'bytes', number: true },
    ],
    one.pairs.map(([from, to, messages, size, kind]) => [`${from}, ${to}`, className(one, kind), messages, size]),
  );
}

/** Sizes from a power of two on, as the profile counts them. */
function powerName(power) {
  return power ? bytes(2 ** (power - 1)) : 'none';
}

function sizesPicture(one) {
  return picture({
    title: 'Time by call and size',
    about: 'Percent of the time in MPI, all ranks together; a size stands for those up to twice as large.',
    height: 120 + 30 * one.calls.length,
    values: () => sizesTable(one),
    option: () => sizesOption(one),
  });
}

function sizesOption(one) {
  const whole = one.calls.reduce((sum, row) => sum + row[2], 0) || 1;
  const calls = one.calls.map(([name]) => name);
  const powers = [...new Set(one.sizes.map(([, power]) => power))].sort((a, b) => a - b);
  const ends = { type: 'category', splitLine: { show: false }, axisLine: { show: false } };
  const left = narrow() ? 96 : 150;
  return heatMap({
    across: axis('size', { ...ends, data: powers.map(powerName), nameGap: 24 }),
    down: axis('', { ...ends, data: calls, inverse: true, axisLabel: { width: left - 12, overflow: 'truncate' } }),
    left,
    points: one.sizes.map((cell) => ({
      value: [powers.indexOf(cell[1]), calls.indexOf(cell[0]), (100 * cell[3]) / whole],
      cell,
    })),
    unit: '%',
    labels: false,
    size: powers.length,
    hover: ({ data: { cell, value } }) =>
      lines(`MPI_${cell[0]}, ${powerName(cell[1])}`, [
        ['calls', cell[2]],
        ['time', `${digits(cell[3])} s`],
        ['of MPI', `${digits(value[2])} %`],
      ]),
  });
}

function sizesTable(one) {
  return table(
    'Every call and size',
    [
      { title: 'call', head: true },
      { title: 'size from', number: true },
      { title: 'calls', number: true },
      { title: 'time', unit: 's', number: true },
    ],
    one.sizes.map(([call, power, count, seconds]) => [`MPI_${call}`, powerName(power), count, seconds.toFixed(6)]),
  );
}

/** A table under its title; `more` stands below it. */
function titledTable(title, columns, rows, ...more) {
  return h('div', null, h('h3', null, title), table(title, columns, rows), ...more);
}

function trafficTable(one) {
  const whole = one.traffic.reduce((sum, row) => sum + row[2], 0);
  if (!one.traffic.length) return null;
  return titledTable(
    'The smallest object that holds both ranks of a message',
    [
      { title: 'sent inside', head: true },
      { title: 'messages', number: true },
      { title: 'bytes', number: true },
      { title: 'of all bytes', unit: '%', number: true },
    ],
    one.traffic.map(([inside, messages, size]) => [
      inside,
      messages,
      size,
      whole ? ((100 * size) / whole).toFixed(1) : DASH,
    ]),
  );
}

/** The map that the ranks had beside one that would send less far. */
function mapTable(one) {
  if (!one.maps.length) return null;
  const kinds = one.classes.filter((name) => one.maps.some((map) => map.traffic.some(([inside]) => inside === name)));
  const sent = (map, name) => map.traffic.find(([inside]) => inside === name)?.[2] ?? 0;
  return titledTable(
    'A rank map that would send less far, in bytes',
    [{ title: 'map', head: true }, ...kinds.map((title) => ({ title, number: true }))],
    one.maps.map((map) => [map.name, ...kinds.map((name) => sent(map, name))]),
    folded('The rank in each place', () => h('p', null, one.maps.at(-1).ranks.join(' '))),
  );
}

function callTable(one) {
  const number = (title, unit) => ({ title, unit, number: true });
  return titledTable(
    'Calls',
    [
      { title: 'call', head: true },
      number('calls'),
      number('time', 's'),
      number('bytes'),
      number('of MPI', '%'),
      number('of wall time', '%'),
      number('COV'),
    ],
    one.calls.map(([name, count, seconds, size, mpi, wall, variation]) => [
      `MPI_${name}`,
      count,
      seconds.toFixed(6),
      size,
      mpi.toFixed(2),
      wall.toFixed(2),
      variation.toFixed(2),
    ]),
  );
}

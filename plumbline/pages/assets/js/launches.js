// Every launch: strips of dots around the median of their figure, a picture per test.

/** Rows of one picture: a taller one is more than some browsers can draw. */
const ROWS = 60;

function launchSection() {
  const entries = data.entries.filter((entry) => entry.valid && entry.figures.length);
  if (!entries.length)
    return section(
      'launches',
      'Launches',
      null,
      h('p', null, 'No valid record: no launch to show. The reasons stand under Left out.'),
    );
  const body = h('div', { class: 'pictures' });
  const show = (every) => {
    const groups = groupBy(entries, (entry) => entry.test);
    const tests = [...groups.keys()].sort((a, b) => a.localeCompare(b));
    body.replaceChildren(...tests.flatMap((test) => strips(test, groups.get(test), every)).map((item) => item.element));
  };
  const box = h('input', { type: 'checkbox', on: { change: () => show(box.checked) } });
  show(false);
  return section(
    'launches',
    'Launches',
    'Every launch of every variant: how far it lies from the median of its figure, the widest spread at the top.',
    h(
      'div',
      { class: 'filters' },
      h('label', { class: 'choice' }, box, ' every figure'),
      h(
        'p',
        { class: 'key' },
        h('i', { class: 'dot' }),
        ' launch ',
        h('i', { class: 'dot open' }),
        ' disturbed launch',
      ),
      h(
        'p',
        { class: 'key' },
        [...new Set(entries.map((entry) => entry.stackName))].sort().map((name) => [stackSwatch(name), ` ${name}  `]),
      ),
    ),
    body,
  );
}

/** The pictures of a test: its rows, the widest spread first, at most ROWS in each. */
function strips(test, entries, every) {
  const chosen = (entry) => (every ? entry.figures : entry.figures.slice(0, 1));
  const rows = entries
    .flatMap((entry) =>
      chosen(entry).map((figure) => ({ entry, figure, spread: spread(figure.samples, figure.value) ?? 0 })),
    )
    .filter((row) => row.figure.value > 0)
    .sort((a, b) => b.spread - a.spread);
  const label = ({ entry, figure }) =>
    [entry.name.slice(test.length).trim(), entry.placed, entry.stackName, every && figure.name]
      .filter(Boolean)
      .join(' · ');
  const count = Math.ceil(rows.length / ROWS);
  return Array.from({ length: count }, (_, number) =>
    strip(
      count > 1 ? `${test} (${number + 1} of ${count})` : test,
      rows.slice(number * ROWS, (number + 1) * ROWS),
      label,
      every,
    ),
  );
}

function strip(title, rows, label, every) {
  const names = [...new Set(rows.map((row) => row.figure.name))].join(', ');
  return picture({
    title,
    about: every ? 'All figures.' : `First figure of each variant: ${names}.`,
    height: 58 + rows.length * 19,
    clicked: ({ data: point }) => openDetails(point.row.entry),
    values: () => stripTable(title, rows, label),
    option: () => stripOption([...rows].reverse(), label), // the vertical axis points up
  });
}

function stripTable(title, rows, label) {
  const columns = [
    { title: 'variant', head: true },
    { title: 'figure' },
    { title: 'median', number: true },
    { title: 'unit' },
    { title: 'spread', unit: '%', number: true },
    { title: 'launches', number: true },
  ];
  return table(
    `Launches of ${title}`,
    columns,
    rows.map((row) => [
      opener(row.entry, label(row)),
      row.figure.name,
      ...human(row.figure.value, row.figure.unit),
      fixed(100 * row.spread, 1),
      row.figure.samples.filter((value) => value !== null).join('  '),
    ]),
  );
}

function stripOption(rows, label) {
  const points = rows.flatMap(stripPoints);
  const end = niceEnd(Math.max(1, most(points.map((point) => Math.abs(point.value[0])))));
  return {
    grid: { left: narrow() ? 130 : 250, right: 18, top: 6, bottom: 42 },
    xAxis: axis('% from median', { type: 'value', min: -end, max: end, interval: end / 2 }),
    yAxis: laneAxis(rows.map(label), narrow() ? 122 : 242),
    tooltip: tooltip(({ data: point }) => stripHover(point, label)),
    series: [{ type: 'scatter', data: points }],
  };
}

function niceEnd(value) {
  const step = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 6, 10].map((factor) => factor * step).find((end) => end >= value * 1.02) ?? value;
}

function stripPoints(row, lane) {
  const tint = stackColour(row.entry.stackName);
  return row.figure.samples
    .map(
      (value, place) =>
        value !== null && {
          value: [100 * (value / row.figure.value - 1), lane],
          row,
          sample: value,
          launch: row.entry.launches[place],
          symbolSize: 9,
          itemStyle: row.entry.launches[place]?.disturbed
            ? { color: 'transparent', borderColor: tint, borderWidth: 1.6 }
            : { color: tint, opacity: 0.75 },
        },
    )
    .filter((point) => point && Number.isFinite(point.value[0]));
}

function stripHover({ row, sample, launch, value }, label) {
  return lines(label(row), [
    [row.figure.name, withUnit(sample, row.figure.unit)],
    ['from median', `${fixed(value[0], 2)} %`],
    ['launch', `${launch.order}, ${launch.start.slice(11, 19)}`],
    ...launch.causes.map((cause) => ['disturbed', cause]),
  ]);
}

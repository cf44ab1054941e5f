// The overview: what the campaign found, worst first, and what it left out.

const COLUMNS = [
  { key: 'verdict', title: 'verdict', sort: (row) => data.severity.indexOf(row.entry.verdict) },
  { key: 'test', title: 'test', sort: (row) => row.entry.name },
  { key: 'stack', title: 'stack', sort: (row) => row.entry.stackName },
  { key: 'placement', title: 'placement', sort: (row) => row.entry.placed },
  { key: 'figure', title: 'figure', sort: (row) => row.figure?.name ?? '' },
  { key: 'median', title: 'median', number: true, sort: (row) => row.figure?.value ?? -1 },
  { key: 'unit', title: 'unit', sort: (row) => row.figure?.unit ?? '' },
  { key: 'spread', title: 'spread', unit: '%', number: true, sort: (row) => row.spread ?? -1 },
  { key: 'limit', title: 'of limit', unit: '%', number: true, sort: (row) => (row.figure && boundOf(row.figure)?.percent) ?? -1 },
  { key: 'reference', title: 'to reference', unit: '%', number: true, sort: (row) => row.deviation ?? 0 },
  {
    key: 'disturbed',
    title: 'disturbed',
    number: true,
    sort: (row) => row.disturbed / Math.max(1, row.entry.launches.length),
  },
];
const view = { text: '', verdicts: new Set(), test: '', stack: '', every: false, column: 'verdict', down: false };

function overview() {
  const body = h('tbody');
  const count = h('p', { class: 'count', role: 'status' });
  const heads = COLUMNS.map((column) => sortHead(column, () => fill(body, count, heads)));
  const refill = () => fill(body, count, heads);
  const element = section(
    'overview',
    'Overview',
    null,
    h('div', { class: 'filters' }, filters(refill)),
    count,
    scrolling(
      'Variants of the campaign',
      h(
        'table',
        { class: 'cards', id: 'variants' },
        h('caption', { class: 'hidden-text' }, 'Variants, worst first'),
        h('thead', null, h('tr', null, heads)),
        body,
      ),
    ),
    noLimits(),
    h(
      'p',
      { class: 'note' },
      'spread: widest distance of two launches, in percent of the median. of limit: percent of the physical limit, ',
      'or of what the letter stands for; ',
      DASH,
      ' where none is known. to reference: how far above (+) or below (−) it.',
    ),
    data.legend.map((text) => h('p', { class: 'note' }, text)),
  );
  refill();
  return element;
}

function noLimits() {
  if (data.entries.some((entry) => entry.figures.some(boundOf))) return null;
  return h(
    'p',
    { class: 'note' },
    `No limit is known for any figure: the facts of site ${data.site} give no memory channels or links (site.yaml), `,
    'and no ceiling was measured on this machine (plumb site measure).',
  );
}

function rowsOf(entry) {
  const figures =
    !entry.reasons.length && entry.figures.length ? (view.every ? entry.figures : entry.figures.slice(0, 1)) : [null];
  const disturbed = entry.launches.filter((launch) => launch.disturbed).length;
  return figures.map((figure) => ({
    entry,
    figure,
    disturbed,
    spread: figure && spread(figure.samples, figure.value),
    deviation: figure?.reference ? figure.value / figure.reference.value - 1 : null,
  }));
}

function wanted(entry) {
  const words = view.text.toLowerCase().split(/\s+/).filter(Boolean);
  const text = [
    entry.id,
    entry.variant,
    entry.name,
    entry.stackName,
    entry.placed,
    entry.verdict,
    ...entry.nodes,
    ...entry.reasons,
    ...entry.figures.map((figure) => figure.name),
  ]
    .join(' ')
    .toLowerCase();
  return (
    words.every((word) => text.includes(word)) &&
    (!view.verdicts.size || view.verdicts.has(entry.verdict)) &&
    (!view.test || entry.test === view.test) &&
    (!view.stack || entry.stackName === view.stack)
  );
}

function fill(body, count, heads) {
  const shown = data.entries.filter(wanted);
  const column = COLUMNS.find((item) => item.key === view.column);
  const rows = shown.flatMap(rowsOf).map((row, place) => [column.sort(row), place, row]);
  rows.sort(([a, i], [b, j]) => (a < b ? -1 : a > b ? 1 : i - j) * (view.down && a !== b ? -1 : 1));
  body.replaceChildren(...rows.map(([, , row]) => overviewRow(row)));
  count.textContent = `${shown.length} of ${plural(data.entries.length, 'variant')} shown${shown.length ? '' : ': no variant matches the filters'}`;
  heads.forEach((head, place) =>
    head.setAttribute(
      'aria-sort',
      COLUMNS[place].key !== view.column ? 'none' : view.down ? 'descending' : 'ascending',
    ),
  );
}

function sortHead(column, changed) {
  const button = h(
    'button',
    { type: 'button', class: 'sort' },
    column.title,
    column.unit && h('span', { class: 'unit' }, ` ${column.unit}`),
  );
  button.addEventListener('click', () => {
    view.down = view.column === column.key ? !view.down : Boolean(column.number);
    view.column = column.key;
    changed();
  });
  return h('th', { scope: 'col', class: column.number && 'number', 'aria-sort': 'none' }, button);
}

function overviewRow(row) {
  const { entry, figure } = row;
  const start = [
    cell('verdict', badge(entry.verdict, entry.verdict === 'unreferenced')),
    h('th', { scope: 'row', class: 'test' }, opener(entry, entry.name)),
    cell('stack', entry.stackName),
    cell('placement', entry.placed),
  ];
  const disturbed = cell('disturbed', row.disturbed ? `${row.disturbed} of ${entry.launches.length}` : '0');
  if (!figure) {
    const why = h('td', { colspan: '6', class: 'why', 'data-label': 'reason' }, entry.reasons[0] ?? 'no figure');
    return h('tr', { class: 'bad' }, start, why, disturbed);
  }
  const [value, unit] = human(figure.value, figure.unit);
  return h(
    'tr',
    null,
    start,
    cell('figure', figure.name),
    cell('median', value, { 'data-value': String(figure.value), 'data-record': entry.id, 'data-figure': figure.name }),
    cell('unit', unit),
    cell('spread', row.spread === null ? DASH : fixed(100 * row.spread, 1)),
    cell('limit', limitBar(figure)),
    cell('reference', row.deviation === null ? DASH : signed(row.deviation).replace(' %', '')),
    disturbed,
  );
}

function cell(key, content, attributes = {}) {
  const { title, number } = COLUMNS.find((column) => column.key === key);
  return h('td', { 'data-label': title, class: number ? `number ${key}` : key, ...attributes }, content);
}

function limitBar(figure) {
  const bound = boundOf(figure);
  if (!bound) return h('span', { title: 'no limit known' }, DASH);
  const filled = Math.min(100, Math.max(0, Number(bound.percent) || 0));
  return h(
    'span',
    { class: 'bar', style: { '--share': `${filled}%` }, title: limitOf(figure) },
    share(bound, 1) + (bound.mark ?? ''),
  );
}

function filters(refill) {
  const change = (key) => (value) => {
    view[key] = value;
    refill();
  };
  const search = h('input', {
    type: 'search',
    placeholder: 'test, placement, id, reason …',
    on: { input: () => change('text')(search.value) },
  });
  const names = (key) => [...new Set(data.entries.map((entry) => entry[key]))].sort();
  const verdicts = data.severity
    .filter((name) => data.counts.verdicts[name])
    .map((name) => ({ key: name, label: ` ${name} ${data.counts.verdicts[name]}`, mark: VERDICTS[name][0] }));
  const every = h('input', { type: 'checkbox', on: { change: () => change('every')(every.checked) } });
  return [
    h('label', { class: 'choice' }, h('span', { class: 'label' }, 'Search'), search),
    toggles('Verdict', verdicts, view.verdicts, refill),
    choice('Test', [{ key: '', label: 'all' }, ...names('test')], '', change('test')),
    choice('Stack', [{ key: '', label: 'all' }, ...names('stackName')], '', change('stack')),
    h('label', { class: 'choice' }, every, ' every figure'),
  ];
}

/** What has no figure, and why. */
function leftOut() {
  const { records, invalid } = data.left_out;
  const older = `${plural(records, 'older record')} of the campaign, ${invalid} of them not valid, ${records === 1 ? 'is' : 'are'} more than a page holds; plumb list shows them.`;
  const { damages } = data;
  return section(
    'left-out',
    'Left out',
    'What has no figure, and why.',
    notValid(),
    records > 0 && h('p', null, older),
    skipped(),
    damages.length > 0 && [
      h('h3', null, `${plural(damages.length, 'line')} of the results could not be read`),
      bullets(damages),
    ],
  );
}

function notValid() {
  const bad = data.entries.filter((entry) => entry.reasons.length || entry.verdict === 'invalid');
  if (!bad.length) return h('p', null, 'Every record of the campaign is valid.');
  const columns = [
    { title: 'test', head: true },
    { title: 'stack' },
    { title: 'placement' },
    { title: 'reasons', kind: 'notes' },
  ];
  const rows = bad.map((entry) => [
    opener(entry, entry.name),
    entry.stackName,
    entry.placed,
    bullets(entry.reasons, true),
  ]);
  return [
    h('h3', null, `${plural(bad.length, 'record')} not valid`),
    table('Records that are not valid', columns, rows),
  ];
}

function skipped() {
  if (!data.outcome)
    return h('p', null, 'Skipped cases: not recorded for these records (only plumb campaign keeps them).');
  const { groups } = data.outcome;
  if (!groups.length) return h('p', null, `All ${plural(data.outcome.ran, 'case')} of the campaign ran.`);
  const total = groups.reduce((sum, group) => sum + group.cases.length, 0);
  const words = { SKIP: 'skipped', FAIL: 'failed', ABORT: 'aborted' };
  return [
    h('h3', null, `${total} of ${plural(data.outcome.ran, 'case')} without a valid record`),
    table(
      'Cases without a valid record',
      [
        { title: 'cases', number: true },
        { title: 'state' },
        { title: 'reason', kind: 'notes' },
        { title: 'which', kind: 'notes' },
      ],
      groups.map((group) => [
        group.cases.length,
        words[group.state] ?? group.state,
        group.reason,
        folded('show', () =>
          h(
            'ul',
            { class: 'plain' },
            group.cases.map((name) => h('li', null, name)),
          ),
        ),
      ]),
    ),
  ];
}

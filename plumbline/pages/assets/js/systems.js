// Published pages above the reports: all systems, one system, its machine.

/** Rows of a table that are shown before a button asks for all. */
const FIRST = 40;

function link(href, text) {
  return href ? h('a', { href }, text) : text;
}

/** A time to the minute, which is enough to tell campaigns apart; the column's title says UTC. */
function minute(text) {
  return text.slice(0, 16).replace('T', ' ');
}

/** A table of which the first rows are shown. */
function longTable(caption, columns, rows) {
  const place = h('div');
  const fill = (shown) => {
    const all = h('button', { type: 'button', on: { click: () => fill(rows) } }, `Show all ${rows.length}`);
    place.replaceChildren(table(caption, columns, shown), ...(shown.length < rows.length ? [all] : []));
  };
  fill(rows.slice(0, FIRST));
  return place;
}

/** Counts of changes with the marks of verdicts: nothing is said by colour alone. */
function changeCounts({ worse, better }) {
  if (!worse && !better) return 'none';
  return [
    worse > 0 && h('span', { class: 'badge below' }, h('span', { 'aria-hidden': 'true' }, '▼'), ` ${worse} worse`),
    worse > 0 && better > 0 && ' ',
    better > 0 && h('span', { class: 'badge within' }, h('span', { 'aria-hidden': 'true' }, '▲'), ` ${better} better`),
  ];
}

function notValidCount(count) {
  return count > 0 ? h('span', { class: 'badge invalid' }, h('span', { 'aria-hidden': 'true' }, '✕'), ` ${count}`) : '0';
}

function systemsSection() {
  const columns = [
    { title: 'system', head: true },
    { title: 'changes over time', kind: 'whole' },
    { title: 'newest campaign', unit: 'UTC', kind: 'whole' },
    { title: 'not valid', number: true },
    { title: 'variants', number: true },
    { title: 'campaigns', number: true },
    { title: 'nodes', number: true },
    { title: 'processor', kind: 'notes' },
  ];
  const rows = data.systems.map((one) => [
    link(one.href, one.name),
    changeCounts(one),
    one.newest ? link(one.newest.href, minute(one.newest.time)) : DASH,
    one.newest ? notValidCount(one.newest.invalid) : DASH,
    one.newest ? one.newest.variants : DASH,
    one.campaigns,
    one.nodes.length,
    one.processors.join('; ') || DASH,
  ]);
  return section(
    'systems',
    'Systems',
    'A line per system: its newest campaign, and the change points of all its figures.',
    data.together && h('p', null, link(data.together.href, 'Systems side by side'), `, by their newest campaigns. ${data.together.closing}`),
    table('Systems', columns, rows),
  );
}

function changeSection() {
  const columns = [
    { title: 'since', unit: 'UTC', head: true, kind: 'whole' },
    { title: 'change', kind: 'whole' },
    { title: 'series' },
    { title: 'noted for that time', kind: 'notes' },
  ];
  const rows = data.changes.map((one) => [
    minute(one.time),
    h(
      'span',
      { class: `badge ${one.direction === 'worse' ? 'below' : 'within'}` },
      `${one.direction === 'worse' ? '▼' : '▲'} ${signed(one.ratio - 1)} ${one.direction}`,
    ),
    link(one.href, one.series),
    one.notes ? one.notes.join('; ') : DASH,
  ]);
  return section(
    'changes',
    'Changes',
    'Where a figure changed and stayed so, the newest first. An alarm is a suspicion: measure again before calling anything slower.',
    rows.length ? longTable('Changes', columns, rows) : h('p', null, 'No lasting change was seen.'),
  );
}

function campaignSection() {
  const columns = [
    { title: 'began', unit: 'UTC', head: true, kind: 'whole' },
    { title: 'campaign' },
    { title: 'stacks' },
    { title: 'variants', number: true },
    { title: 'not valid', number: true },
    { title: 'launches', number: true },
    { title: 'disturbed', number: true },
  ];
  const rows = data.campaigns.map((one) => [
    link(one.href, minute(one.time)),
    h('code', null, one.name),
    one.stacks.join(', '),
    one.variants,
    notValidCount(one.invalid),
    one.launches,
    one.disturbed,
  ]);
  return section(
    'campaigns',
    'Campaigns',
    'The newest first; each leads to its report.',
    rows.length ? longTable('Campaigns', columns, rows) : h('p', null, 'Its records are of no campaign.'),
  );
}

function testSection() {
  const columns = [
    { title: 'test', head: true },
    { title: 'series', number: true },
    { title: 'records', number: true },
    { title: 'last measured', unit: 'UTC', kind: 'whole' },
    { title: 'changes over time', kind: 'whole' },
  ];
  const rows = data.tests.map((one) => [
    link(one.href, one.name),
    one.series,
    one.records,
    minute(one.time),
    changeCounts(one),
  ]);
  return section(
    'tests',
    'Tests',
    'Each leads to its figures over time. A series needs two sessions.',
    table('Tests', columns, rows),
  );
}

function noteSection() {
  return section(
    'notes',
    'Notes',
    'What people noted of this system (plumb note), the newest first.',
    longTable(
      'Notes',
      [{ title: 'time', unit: 'UTC', head: true, kind: 'whole' }, { title: 'what happened', kind: 'notes' }],
      data.notes.map(([at, text]) => [minute(at), text]),
    ),
  );
}

function machineSection() {
  return section(
    'topology',
    'Topology',
    'As plumb topology draws it.',
    data.machines.length ? data.machines.map(machineDrawing) : h('p', null, 'No partition of the records is described here.'),
  );
}

function machineDrawing({ partition, text, why }) {
  return [
    h('h3', null, `Partition ${partition}`),
    text ? scrolling(`Topology of ${partition}`, h('pre', { class: 'topology' }, text)) : h('p', null, `No drawing: ${why}.`),
  ];
}

function hostSection() {
  return section(
    'hosts',
    'Hosts',
    `The newest ${data.hosts.length} of ${plural(data.states, 'state')} in which records found the hosts; what differs stands first.`,
    hostTable(data.hosts),
  );
}

/** What the head of a system's page says of it. */
function systemFacts() {
  const { summary } = data;
  const nodes = summary.nodes.length > 6 ? `${summary.nodes.slice(0, 6).join(', ')} and ${summary.nodes.length - 6} more` : summary.nodes.join(', ');
  return [
    facts('System', [
      ['processor', summary.processors.join('; ') || 'unknown'],
      [summary.nodes.length === 1 ? 'node' : 'nodes', nodes],
      ['measured', `${time(summary.begin)} to ${time(summary.end)}`],
      ['machine', link(data.machine, 'topology and hosts')],
    ]),
    h(
      'div',
      { class: 'tiles' },
      tile(data.campaigns.length, data.campaigns.length === 1 ? 'campaign' : 'campaigns'),
      tile(summary.records, summary.records === 1 ? 'record' : 'records'),
      tile(summary.worse, 'changes for the worse', summary.worse > 0 && 'below', summary.worse > 0 && '▼'),
      tile(summary.better, 'for the better', summary.better > 0 && 'within', summary.better > 0 && '▲'),
    ),
  ];
}

layOut(
  [h('div', { class: 'title' }, h('h1', null, data.heading), themeButton()), ...(data.summary ? systemFacts() : [])],
  [
    data.systems && systemsSection(),
    data.changes && changeSection(),
    data.tests && testSection(),
    data.campaigns && campaignSection(),
    data.notes?.length > 0 && noteSection(),
    data.machines && machineSection(),
    data.hosts && hostSection(),
  ].filter(Boolean),
);

// One record in a drawer: figures, launches, placement, circumstances, and how to repeat it.

/** A button that opens a record's drawer. */
function opener(entry, text) {
  return h(
    'button',
    { type: 'button', class: 'opener', 'aria-haspopup': 'dialog', on: { click: () => openDetails(entry) } },
    text,
  );
}

function openDetails(entry) {
  const dialog = document.getElementById('details');
  dialog.replaceChildren(detailsHead(entry, dialog), h('div', { class: 'drawer', tabindex: '-1' }, detailsBody(entry)));
  if (!dialog.open) dialog.showModal();
  dialog.querySelector('.drawer').scrollTop = 0;
  history.replaceState(null, '', `#record-${entry.id}`);
}

function prepareDetails() {
  const dialog = document.getElementById('details');
  dialog.addEventListener('close', () => {
    history.replaceState(null, '', '#');
    dialog.replaceChildren();
  });
  dialog.addEventListener('click', (event) => {
    if (event.target === dialog) dialog.close();
  });
}

function openFromAddress() {
  const id = location.hash.startsWith('#record-') ? location.hash.slice(8) : null;
  const entry = id && data.entries.find((item) => item.id.startsWith(id));
  if (entry) openDetails(entry);
}

function detailsHead(entry, dialog) {
  return h(
    'div',
    { class: 'drawer-head' },
    h(
      'div',
      null,
      h('h2', { id: 'details-title' }, entry.name),
      h('p', null, badge(entry.verdict), ` ${entry.stackName}, ${entry.placed}`),
    ),
    h('button', { type: 'button', class: 'close', 'aria-label': 'Close', on: { click: () => dialog.close() } }, '✕'),
  );
}

function detailsBody(entry) {
  return [
    reasonsOf(entry),
    part(
      'Figures',
      entry.figures.length ? figuresTable(entry) : h('p', null, 'None: a record that is not verified has no figures.'),
    ),
    part('Launches', entry.figures.length ? launchPicture(entry).element : null, launchesTable(entry), tails(entry)),
    part('Placement', placementOf(entry)),
    part('Repeat it', repeatOf(entry)),
    part('Circumstances', circumstancesOf(entry)),
  ];
}

function part(title, ...children) {
  return h('section', { class: 'part' }, h('h3', null, title), ...children);
}

function reasonsOf(entry) {
  if (!entry.reasons.length) return null;
  const all = entry.reasons.map((reason) => h('li', null, reason));
  return h(
    'div',
    { class: 'reasons' },
    h('strong', null, entry.verified ? 'Not valid' : 'Not verified'),
    h('ul', null, all),
  );
}

function figuresTable(entry) {
  const rows = entry.figures.map((figure) => {
    const [value, unit] = human(figure.value, figure.unit);
    return [figure.name, value, unit, figure.better, range(figure), referenceOf(figure), limitOf(figure)];
  });
  const columns = [
    { title: 'figure', head: true },
    { title: 'median', number: true },
    { title: 'unit' },
    { title: 'better' },
    { title: 'range of launches', kind: 'whole' },
    { title: 'reference', kind: 'notes' },
    { title: 'limit', kind: 'notes' },
  ];
  return table('Figures of this record', columns, rows);
}

function range(figure) {
  const numbers = figure.samples.filter((value) => typeof value === 'number');
  if (!numbers.length) return DASH;
  return `${withUnit(least(numbers), figure.unit)} … ${withUnit(most(numbers), figure.unit)}`;
}

function referenceOf(figure) {
  const known = figure.reference;
  if (!known) return 'none';
  return `${withUnit(known.value, known.unit)} (${signed(figure.value / known.value - 1)}; ${known.method}, ${known.file})`;
}

/** What a figure is held against: its declared limit, or else the measured ceiling or the model. */
function boundOf(figure) {
  return figure.limit ?? figure.ceiling;
}

/** Percent of a limit or ceiling as text. */
function share(bound, places) {
  return typeof bound.percent === 'number' ? fixed(bound.percent, places) : String(bound.percent);
}

function limitOf(figure) {
  const bound = boundOf(figure);
  if (!bound) return 'no limit known';
  const kind = bound.measured ? `, a ceiling measured ${bound.measured.slice(0, 10)}` : '';
  const raised = bound.raising ? `; ${bound.raising} by this record` : '';
  const suspect = bound.suspect ? '; the ceiling is suspect: plumb site measure' : '';
  return `${share(bound, 1)} % of ${withUnit(bound.value, bound.unit)} (${bound.method})${kind}${raised}${suspect}`;
}

/** Every launch in the order started: how far each figure was from its median. */
function launchPicture(entry) {
  const order = entry.launches.map((launch) => launch.order);
  return picture({
    title: 'Every launch',
    about: 'How far each launch lies from the median of its figure, in the order started. Diamonds: disturbed.',
    height: 190,
    option: () => ({
      grid: { left: 62, right: 12, top: entry.figures.length > 1 ? 32 : 10, bottom: 42 },
      legend:
        entry.figures.length > 1 ? { top: 0, left: 0, textStyle: { color: colour('text') }, itemHeight: 9 } : undefined,
      xAxis: axis('launch of the session', { type: 'category', data: order, boundaryGap: true }),
      yAxis: axis('% from median', { type: 'value', nameGap: 44, scale: false }),
      tooltip: tooltip(({ seriesName, data: point }) =>
        lines(`launch ${point.launch.order}`, [
          [seriesName, point.text],
          ['from median', `${fixed(point.value[1], 2)} %`],
          ...point.launch.causes.map((cause) => ['disturbed', cause]),
        ]),
      ),
      series: entry.figures.map((figure, number) => ({
        type: 'scatter',
        name: figure.name,
        symbolSize: 9,
        itemStyle: { color: colour(`stack-${number % STACK_COLOURS}`) },
        data: figure.samples
          .map((value, place) => value !== null && launchPoint(figure, value, entry.launches[place], place))
          .filter(Boolean),
      })),
    }),
  });
}

function launchPoint(figure, value, launch, place) {
  return {
    value: [place, 100 * (value / figure.value - 1)],
    launch,
    text: withUnit(value, figure.unit),
    symbol: launch.disturbed ? 'diamond' : 'circle',
    symbolSize: launch.disturbed ? 12 : 9,
  };
}

function launchesTable(entry) {
  const counted = entry.launches.some((launch) => launch.energy_j);
  const columns = [
    { title: 'launch', number: true, head: true },
    { title: 'start' },
    { title: 'wall', unit: 's', number: true },
    ...(counted ? [{ title: 'energy', unit: 'J', number: true }] : []),
    { title: 'verified' },
    ...entry.figures.map((figure) => ({ title: figure.name, unit: figure.unit, number: true })),
    { title: 'notes', kind: 'notes' },
  ];
  const rows = entry.launches.map((launch, place) => [
    launch.order,
    launch.start.slice(11, 23),
    fixed(launch.wall_s, 2),
    ...(counted ? [joules(launch.energy_j)] : []),
    launch.verified ? 'yes' : 'NO',
    ...entry.figures.map((figure) => String(figure.samples[place] ?? DASH)),
    notesOf(launch),
  ]);
  return table('Launches of this record, in the order started', columns, rows);
}

function joules(counters) {
  return counters ? fixed(Object.values(counters).reduce((sum, value) => sum + value, 0), 0) : DASH;
}

function notesOf(launch) {
  const again = launch.superseded ? ['does not count: its pair was measured again'] : [];
  const state =
    launch.status === 'ok'
      ? again
      : [`${launch.status}${launch.exit_code === null ? '' : `, exit status ${launch.exit_code}`}`];
  const measured = Object.entries(launch.host)
    .map(([name, value]) => `${name.replaceAll('_', ' ')} ${plain(value)}`)
    .join(', ');
  return [
    h('span', null, [...state, ...launch.reasons, ...launch.causes.map((cause) => `disturbed: ${cause}`)].join('; ')),
    measured && h('details', { class: 'small' }, h('summary', null, 'host during the launch'), measured),
  ];
}

function tails(entry) {
  return entry.launches
    .filter((launch) => launch.tail)
    .map((launch) =>
      folded(`End of the output of launch ${launch.order}`, () => h('pre', { tabindex: '0' }, launch.tail)),
    );
}

function placementOf(entry) {
  const plan = data.shared.plan[entry.plan];
  const memory = [...new Set((plan.ranks ?? []).map((rank) => memoryOf(rank.mem)))].join('; ');
  const columns = [
    { title: 'rank', number: true, head: true },
    { title: 'host' },
    { title: 'planned CPUs' },
    { title: 'seen CPUs' },
    { title: 'CPUs of each thread', kind: 'notes' },
    { title: 'large mappings by NUMA node' },
  ];
  const rows = entry.ranks.map((rank) => [
    rank.rank,
    rank.host ?? DASH,
    rank.planned ?? DASH,
    rank.seen ?? 'no witness',
    rank.threads.join('  ') || DASH,
    Object.entries(rank.memory)
      .map(([node, size]) => `${node}: ${size} MB`)
      .join('  ') || DASH,
  ]);
  return [
    h(
      'p',
      null,
      `${entry.placed}; memory ${memory || DASH}; ${entry.nodes.join(', ')}; ${entry.verified ? 'seen as planned in every launch' : 'NOT verified'}`,
    ),
    cpuMap(entry, plan),
    table('Ranks: planned and seen in the last launch', columns, rows),
  ];
}

function memoryOf(mem) {
  if (mem.policy === 'none') return 'where first touched';
  return `${mem.policy === 'bind' ? 'bound to' : 'interleaved over'} node${mem.nodes.length > 1 ? 's' : ''} ${mem.nodes.join('+')}`;
}

/** The CPUs of the node, each with the rank and thread planned on it. The table below says the same. */
function cpuMap(entry, plan) {
  const labels = new Map();
  for (const rank of plan.ranks ?? []) {
    rank.places.forEach((place, thread) => place.forEach((cpu) => labels.set(cpu, `${rank.local_rank}.${thread}`)));
    if (!rank.places.length) rank.cpus.forEach((cpu) => labels.set(cpu, '∗'));
  }
  const cpus = expand(data.shared.host[entry.host].cpus_online) ?? [...labels.keys()].sort((a, b) => a - b);
  if (!cpus.length || cpus.length > 1024) return null;
  return h(
    'div',
    { class: 'cpus', 'aria-hidden': 'true' },
    cpus.map((cpu) =>
      h(
        'span',
        { class: labels.has(cpu) && 'used', title: `CPU ${cpu}` },
        h('small', null, cpu),
        h('b', null, labels.get(cpu) ?? '·'),
      ),
    ),
    h('em', null, 'small: CPU; large: rank.thread, ∗ any rank, · unused'),
  );
}

/** "0-3,8" as numbers; null for anything else. */
function expand(list) {
  if (typeof list !== 'string' || !/^\d+(-\d+)?(,\d+(-\d+)?)*$/.test(list)) return null;
  return list.split(',').flatMap((run) => {
    const [first, last = first] = run.split('-').map(Number);
    return last - first > 4096 ? [] : Array.from({ length: last - first + 1 }, (_, step) => first + step);
  });
}

function repeatOf(entry) {
  return [
    h('p', null, 'The variant once more, on the same stack, with the same checks:'),
    copied('plumb reproduce', entry.repeat),
    h('p', null, 'The command of each launch, in its environment:'),
    copied('command of each launch', [...entry.environment, entry.command].join(' \\\n')),
  ];
}

function circumstancesOf(entry) {
  const stack = data.shared.stack[entry.stack];
  const bench = data.shared.benchmark[entry.benchmark];
  const rows = [
    ['record', `${entry.id} (${entry.state}), session ${entry.session}`],
    ['time', time(entry.time)],
    ['variant', entry.variant],
    ['parameters', plain(entry.params)],
    ['partition', `${data.site}:${entry.partition} on ${entry.nodes.join(', ')}`],
    ['suite', data.shared.suite[entry.suite]],
    ['stack', stackText(stack)],
    ['benchmark', `${bench.suite} ${bench.version}, sha256 ${bench.sha256}`],
    ['built', bench.built],
    ['load', entry.load ? plain(entry.load) : 'not recorded'],
    ...Object.entries(data.shared.host[entry.host]).map(([name, value]) => [name.replaceAll('_', ' '), plain(value)]),
  ];
  return facts('Circumstances of this record', rows);
}

function stackText(stack) {
  return `${stack.name}: ${stack.mpi.family} ${stack.mpi.version}, ${stack.compiler?.name ?? 'compiler'} ${stack.compiler?.version ?? 'unknown'}, provider ${stack.provider}, manifest ${stack.sha256.slice(0, 12)}`;
}

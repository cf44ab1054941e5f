// Draws what Python describes (plumbline/show/pages/blocks.py): texts, facts, tables, charts, and sections of them.

/** Kinds of blocks that are an element around their pieces. */
const ELEMENTS = {
  heading: ['h3'],
  paragraph: ['p'],
  note: ['p', { class: 'note' }],
  key: ['p', { class: 'key' }],
  hidden: ['p', { class: 'hidden-text' }],
  code: ['code'],
  strong: ['strong'],
  small: ['small', { class: 'under' }],
  glyph: ['span', { class: 'glyph' }],
  output: ['pre', { tabindex: '0' }],
  pictures: ['div', { class: 'pictures' }],
  stacked: ['div', { class: 'pictures one' }],
  matrices: ['div', { class: 'matrices' }],
  tiles: ['div', { class: 'tiles' }],
  reasons: ['div', { class: 'reasons' }],
};

/** Kinds of blocks that are more than that. */
const FORMS = {
  section: drawSection,
  part: ({ title, pieces }) => h('section', { class: 'part' }, h('h3', null, title), draw(pieces)),
  bullets: ({ pieces, plain }) => h('ul', { class: plain && 'plain' }, pieces.map((item) => h('li', null, draw(item)))),
  facts: drawFacts,
  command: ({ label, pieces }) => copied(label, pieces[0]),
  drawing: drawTopology,
  folded: ({ title, look, pieces }) => folded(title, look, () => h('div', null, draw(pieces))),
  tile: drawTile,
  badge: ({ verdict, pieces }) => badge(verdict, pieces[0]),
  icon: ({ look, colour: tint }) => h('i', { class: look, style: tint && { background: `var(--${tint})` } }),
  bar: ({ share, hint, pieces }) => h('span', { class: 'bar', style: { '--share': `${share}%` }, title: hint }, pieces),
  scale: ({ pieces: [low, high] }) => h('div', { class: 'scale' }, low, h('span', { class: 'ramp' }), high),
  cpus: drawCpus,
  link: ({ href, entry, pieces }) => (href ? h('a', { href }, draw(pieces)) : opener(entry, draw(pieces))),
  shared: ({ number }) => draw(data.shared[number]),
  choice: drawChoice,
  toggled: drawToggled,
  table: drawTable,
  picker: drawPicker,
  listing: drawListing,
  chart: (chart) => drawChart(chart),
};

function draw(piece) {
  if (piece === null) return DASH;
  if (typeof piece === 'function') return piece();
  if (Array.isArray(piece)) return piece.map(draw);
  if (typeof piece !== 'object') return piece === '' || piece === true ? false : piece;
  const { is, id, title, pieces } = piece;
  if (FORMS[is]) return FORMS[is](piece);
  const [tag, attributes] = ELEMENTS[is];
  return h(tag, { ...attributes, id, title }, draw(pieces));
}

function drawSection({ id, title, about, pieces, look, empty }) {
  if (empty && !look) {
    const name = h('h2', { id: `${id}-title` }, title);
    return h('section', { id, class: 'empty', 'aria-labelledby': `${id}-title` }, name, draw(pieces));
  }
  const head = [h('h2', { id: `${id}-title` }, title), about && h('p', { class: 'about' }, about)];
  return h('section', { id, class: look, 'aria-labelledby': `${id}-title` }, head, draw(pieces));
}

function drawFacts({ caption, rows, more }) {
  const row = ([name, value]) => h('div', null, h('dt', null, draw(name)), h('dd', null, draw(value)));
  return h('dl', { class: 'facts', 'aria-label': caption }, [...rows, ...(data.shared?.[more] ?? [])].map(row));
}

/** A drawing in letters, which are smaller where the page is narrow. */
function drawTopology({ label, pieces }) {
  const columns = Math.max(...pieces[0].split('\n').map((line) => line.length));
  return scrolling(label, h('pre', { class: 'topology', style: { '--columns': columns } }, pieces));
}

/** A count in the head of a page. */
function drawTile({ count, verdict, look = verdict, pieces }) {
  const mark = VERDICTS[verdict] && h('span', { class: 'glyph', 'aria-hidden': 'true' }, VERDICTS[verdict][0]);
  return h('div', { class: `tile ${look ?? ''}` }, h('b', null, mark, count), h('span', null, pieces));
}

/** The CPUs of a node, each with what is planned on it. */
function drawCpus({ cpus, pieces }) {
  const cell = ([cpu, label]) =>
    h('span', { class: label && 'used', title: `CPU ${cpu}` }, h('small', null, cpu), h('b', null, label || '·'));
  return h('div', { class: 'cpus', 'aria-hidden': 'true' }, cpus.map(cell), h('em', null, pieces));
}

function drawChoice({ label, options, look }) {
  const place = h('div', { class: look });
  const show = (number) => place.replaceChildren(...h('div', null, draw(options[number][1])).childNodes);
  show(0);
  const names = options.map(([name], number) => [String(number), name]);
  return [h('div', { class: 'filters' }, choice(label, names, show)), place];
}

/** Charts whose series are shown while their `keys` are pressed, one of each group: [label, [[key, icon]]]. */
function drawToggled({ groups, pieces }) {
  const pressed = groups.map(([, items]) => new Set(items.map(([key]) => key)));
  const charts = pieces.map((chart) => drawChart(chart, ({ keys }) => keys.every((key, place) => pressed[place].has(key))));
  const redraw = () => charts.forEach((chart) => chart.redraw());
  const buttons = groups.map(([label, items], place) =>
    toggles(label, items.map(([key, icon]) => [key, draw(icon), ` ${key}`]), pressed[place], redraw),
  );
  return [h('div', { class: 'filters' }, buttons), h('div', { class: 'pictures' }, charts)];
}

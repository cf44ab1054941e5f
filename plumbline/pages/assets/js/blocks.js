// Draws what Python describes (plumbline/pages/blocks.py): texts, facts, tables, charts, and sections of them.

/** Kinds of blocks that are an element around their pieces. */
const ELEMENTS = {
  heading: ['h3'],
  paragraph: ['p'],
  note: ['p', { class: 'note' }],
  code: ['code'],
  strong: ['strong'],
  small: ['small', { class: 'under' }],
  glyph: ['span', { class: 'glyph' }],
  pictures: ['div', { class: 'pictures' }],
  tiles: ['div', { class: 'tiles' }],
};

/** Kinds of blocks that are more than that. */
const FORMS = {
  section: ({ id, title, about, pieces }) => section(id, title, about, draw(pieces)),
  bullets: ({ pieces, plain: bare }) => bullets(pieces.map(draw), !bare),
  facts: ({ caption, rows }) => facts(caption, rows.map((row) => row.map(draw))),
  command: ({ label, pieces }) => copied(label, pieces[0]),
  drawing: ({ label, pieces }) => scrolling(label, h('pre', { class: 'topology' }, pieces)),
  folded: ({ title, pieces }) => folded(title, () => h('div', null, draw(pieces))),
  tile: ({ count, verdict, pieces }) => tile(count, pieces[0], verdict, VERDICTS[verdict]?.[0]),
  plain: ({ value }) => plain(value),
  badge: ({ verdict, pieces }) => badge(verdict, false, pieces[0]),
  link: ({ href, entry, pieces }) =>
    href ? h('a', { href }, draw(pieces)) : opener(data.entries[entry], draw(pieces)),
  choice: drawChoice,
  table: drawTable,
};

function draw(piece) {
  if (piece === null) return DASH;
  if (Array.isArray(piece)) return piece.map(draw);
  if (typeof piece !== 'object') return piece === '' ? false : piece;
  const { is, id, title, pieces } = piece;
  if (FORMS[is]) return FORMS[is](piece);
  const [tag, attributes] = ELEMENTS[is];
  return h(tag, { ...attributes, id, title }, draw(pieces));
}

function drawChoice({ label, options }) {
  const place = h('div');
  const show = (number) => place.replaceChildren(...[draw(options[number][1])].flat(Infinity).filter(Boolean));
  show(0);
  const names = options.map(([name], number) => ({ key: String(number), label: name }));
  return [h('div', { class: 'filters' }, choice(label, names, '0', show)), place];
}

/** A table, of which the first rows are shown until a button asks for all. */
function drawTable({ caption, columns, rows, empty, first = Infinity }) {
  if (empty && !rows.length) return h('p', null, empty);
  const heads = columns.map((column, place) => ({ ...column, number: column.kind === 'number', head: place === 0 }));
  const cell = (piece, place) => (columns[place].kind === 'code' && piece ? h('code', null, piece) : draw(piece));
  const whole = (shown) => table(caption, heads, shown.map((row) => row.map(cell)));
  if (rows.length <= first) return whole(rows);
  const place = h('div', null, whole(rows.slice(0, first)));
  const all = () => place.replaceChildren(whole(rows));
  place.append(h('button', { type: 'button', on: { click: all } }, `Show all ${rows.length}`));
  return place;
}

// Tables: of which the first rows are shown, whose rows choose what is drawn, whose rows are filtered and sorted.

/** A table that is too wide scrolls by itself; on a phone its rows are cards, but those of a `look` of its own. `columns` are {title, unit, kind, head}; the head names the row, else the first does. */
function tableOf({ caption, columns, id, look, titled }, rows, heads = columns.map((column) => headOf(column))) {
  const name = h('caption', { class: !titled && 'hidden-text' }, caption);
  const body = h('tbody', null, rows.map((cells) => rowOf(columns, cells)));
  return scrolling(caption, h('table', { id, class: look ?? 'table' }, name, h('thead', null, h('tr', null, heads)), body));
}

function headOf({ title, unit, kind }, sort) {
  const shown = [title, unit && h('span', { class: 'unit' }, ` ${unit}`)];
  const button = sort && h('button', { type: 'button', class: 'sort', on: { click: sort } }, shown);
  return h('th', { scope: 'col', class: /^number/.test(kind) && 'number' }, button ?? shown);
}

/** A cell may be a block: its class, its value, its share of the scale of colours. */
function rowOf(columns, cells) {
  const head = Math.max(0, columns.findIndex((column) => column.head));
  const elements = cells.map((piece, place) => {
    const { title, kind } = columns[place];
    const cell = piece?.is === 'cell' ? piece : { pieces: piece };
    const { look = kind, value, hint, share, pieces } = cell;
    const named = place === head;
    const attributes = { scope: named && 'row', class: look, 'data-label': title, 'data-value': value };
    return h(named ? 'th' : 'td', { ...attributes, title: hint, style: share !== undefined && heatOf(share) }, draw(pieces));
  });
  return h('tr', null, elements);
}

/** The colour at a share of the scale, and that of text on it. */
function heatOf(share) {
  const below = Math.min(Math.floor(4 * share), 3);
  const mixed = `color-mix(in srgb, var(--ramp-${below + 1}) ${100 * (4 * share - below)}%, var(--ramp-${below}))`;
  return { background: mixed, '--ink': `var(--on-${share > 0.62 ? 'high' : 'low'})` };
}

/** A table, of which the first rows are shown until a button asks for all. */
function drawTable({ empty, first = Infinity, rows, ...table }) {
  if (empty && !rows.length) return h('p', null, empty);
  if (rows.length <= first) return tableOf(table, rows);
  const place = h('div', null, tableOf(table, rows.slice(0, first)));
  const all = () => place.replaceChildren(tableOf(table, rows));
  place.append(h('button', { type: 'button', on: { click: all } }, `Show all ${rows.length}`));
  return place;
}

/** A table whose rows choose what is drawn above it; typed words narrow it. `options` are [cells, block]. */
function drawPicker({ caption, columns, options, placeholder, first }) {
  const drawing = h('div', { class: 'pictures one' });
  const list = h('div');
  let chosen = 0;
  const button = (number) => {
    const pressed = () => {
      chosen = number;
      drawing.replaceChildren(draw(options[number][1]));
      list.querySelectorAll('.opener').forEach((one) => one.setAttribute('aria-pressed', String(one === element)));
    };
    const attributes = { type: 'button', class: 'opener', 'aria-pressed': String(number === chosen) };
    const element = h('button', { ...attributes, on: { click: pressed } }, options[number][0][0]);
    return element;
  };
  const cells = options.map(([[, ...others]], number) => [() => button(number), ...others]);
  const fill = (words) => {
    const matches = (_, number) => words.every((word) => options[number][0].join(' ').toLowerCase().includes(word));
    list.replaceChildren(drawTable({ caption, columns, rows: cells.filter(matches), first }));
  };
  fill([]);
  drawing.append(draw(options[0][1]));
  return [drawing, h('div', { class: 'filters' }, searchField(placeholder, fill)), list];
}

/**
 * A table whose rows are searched, filtered and sorted. A row is {words, tags, lines}: what is searched, its key in each
 * filter, and [cells, what they are sorted by] of its lines: the first is shown, or all where the box of the name `more`
 * is checked.
 */
function drawListing({ noun, placeholder, filters, more, rows, ...table }) {
  const chosen = filters.map(() => new Set());
  let [words, column, down, every] = [[], 0, false, false];
  const sortBy = (place) => {
    down = column === place ? !down : /^number/.test(table.columns[place].kind);
    column = place;
    fill();
  };
  const heads = table.columns.map((one, place) => headOf(one, () => sortBy(place)));
  const element = tableOf(table, [], heads);
  const count = h('p', { class: 'count', role: 'status' });
  const order = ([a, i], [b, j]) => (a < b ? -1 : a > b ? 1 : i - j) * (down && a !== b ? -1 : 1);
  const wanted = (row) =>
    words.every((word) => row.words.includes(word)) && chosen.every((keys, place) => !keys.size || keys.has(row.tags[place]));
  const fill = () => {
    const matching = rows.filter(wanted);
    const whole = ({ lines }) => lines.slice(0, every ? lines.length : 1);
    const shown = matching.flatMap(whole).map(([cells, keys], place) => [keys[column], place, cells]).sort(order);
    element.querySelector('tbody').replaceChildren(...shown.map(([, , cells]) => rowOf(table.columns, cells)));
    count.textContent = `${matching.length} of ${noun} shown${matching.length ? '' : ': none matches the filters'}`;
    heads.forEach((head, place) =>
      head.setAttribute('aria-sort', place !== column ? 'none' : down ? 'descending' : 'ascending'),
    );
  };
  const search = (typed) => {
    words = typed;
    fill();
  };
  const narrow = ({ label, options, marked }, place) => {
    if (marked) return toggles(label, options.map(([key, name]) => [key, VERDICTS[key][0], ` ${name}`]), chosen[place], fill);
    const pick = (key) => {
      chosen[place] = new Set(key ? [key] : []);
      fill();
    };
    return choice(label, [['', 'all'], ...options], pick);
  };
  const check = ({ target }) => {
    every = target.checked;
    fill();
  };
  const box = h('input', { type: 'checkbox', on: { change: check } });
  fill();
  const controls = [searchField(placeholder, search), filters.map(narrow), h('label', { class: 'choice' }, box, ` ${more}`)];
  return [h('div', { class: 'filters' }, controls), count, element];
}

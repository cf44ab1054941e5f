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
  picker: drawPicker,
  chart: drawChart,
};

function draw(piece) {
  if (piece === null) return DASH;
  if (typeof piece === 'function') return piece();
  if (Array.isArray(piece)) return piece.map(draw);
  if (typeof piece !== 'object') return piece === '' ? false : piece;
  const { is, id, title, pieces } = piece;
  if (FORMS[is]) return FORMS[is](piece);
  const [tag, attributes] = ELEMENTS[is];
  return h(tag, { ...attributes, id, title }, draw(pieces));
}

function drawChoice({ label, options, look }) {
  const place = h('div', { class: look });
  const show = (number) => place.replaceChildren(...h('div', null, draw(options[number][1])).childNodes);
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
  const fill = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = (_, number) => words.every((word) => options[number][0].join(' ').toLowerCase().includes(word));
    list.replaceChildren(drawTable({ caption, columns, rows: cells.filter(matches), first }));
  };
  const search = h('input', { type: 'search', placeholder, on: { input: fill } });
  fill();
  drawing.append(draw(options[0][1]));
  const label = h('label', { class: 'choice' }, h('span', { class: 'label' }, 'Search'), search);
  return [drawing, h('div', { class: 'filters' }, label), list];
}

/** A picture of the rows of a table: a point is [row, x, y, value of its colour]. */
function drawChart(chart) {
  const { title, about, id, height, square, targets, lost } = chart;
  const follow = (row) => {
    const to = targets[row];
    if (typeof to === 'number') openDetails(data.entries[to]);
    else if (to) location.assign(to);
    else say(`Record ${chart.rows[row].find((_, place) => chart.columns[place].kind === 'code')} ${lost}`);
  };
  const { element } = picture({
    title,
    about,
    height: square ? (width) => Math.min(width + 40, Math.max(300, 102 + square * 40)) : height,
    clicked: targets && (({ data: { row } }) => follow(row)),
    values: () => drawTable({ ...chart, caption: title }),
    option: () => chartOption(chart),
  });
  if (id) element.id = id;
  return element;
}

function chartOption({ x, y, heat, wide, points, columns, rows, hollow = [], targets, marks = [], levels = [] }) {
  const left = wide ? (narrow() ? 96 : 150) : heat ? 56 : 62;
  const tint = (row) => colour(!targets || targets[row] !== null ? 'accent' : 'muted');
  const faded = { color: 'transparent', borderColor: colour('muted'), borderWidth: 1.6 };
  const drawn = points.map(([row, ...value]) => ({
    value,
    row,
    itemStyle: heat ? undefined : hollow.includes(row) ? faded : { color: tint(row) },
  }));
  const line = { color: colour('text'), width: 1.5, opacity: 0.6 };
  return {
    grid: { left, right: 20, top: heat ? 10 : 26, bottom: heat ? 92 : 44 },
    xAxis: chartAxis(x, heat, false, left),
    yAxis: chartAxis(y, heat, true, left),
    visualMap: heat && heatScale(points.map((point) => point[3]), heat),
    tooltip: tooltip(({ data: { row } }) => chartHover(columns, rows[row])),
    series: [
      heat
        ? heatSeries(drawn, heat, x.labels.length)
        : { type: 'scatter', symbolSize: 8, data: drawn, markLine: { symbol: 'none', silent: true, data: marks.map(chartMark) } },
      ...levels.map((ends) => ({ type: 'line', symbol: 'none', silent: true, tooltip: { show: false }, lineStyle: line, data: ends })),
    ],
  };
}

/** An axis of names or of numbers; one that has ends shows only the numbers between them. */
function chartAxis({ name, labels, ...rest }, heat, vertical, left) {
  const names = { type: 'category', data: labels, splitLine: { show: false } };
  if (heat) {
    const axisLabel = vertical ? { width: left - 12, overflow: 'truncate' } : {};
    return axis(name, { ...names, axisLine: { show: false }, nameGap: vertical ? 36 : 24, inverse: vertical, axisLabel });
  }
  if (labels) return axis(name, names);
  const formatter = (value) => String(Number(value.toPrecision(4)));
  const bounded = vertical && 'min' in rest ? { formatter, showMinLabel: false, showMaxLabel: false } : {};
  const free = { type: 'value', scale: true, boundaryGap: ['12%', '12%'], nameGap: vertical ? 46 : 28 };
  return axis(name, { ...free, ...rest, axisLabel: bounded });
}

function chartMark({ label, tone, dash, place = 'end', ...at }) {
  const tint = colour(tone);
  return {
    ...at,
    lineStyle: { color: tint, type: dash, width: 1.4 },
    label: { show: Boolean(label), formatter: label, color: tint, position: place, fontSize: 11 },
  };
}

function chartHover(columns, cells) {
  const [first, ...others] = columns.map(({ title, unit }, place) => [title, [draw(cells[place]), unit && ` ${unit}`]]);
  return lines(h('span', null, `${first[0]} `, first[1]), others.filter((_, place) => ![null, undefined, ''].includes(cells[place + 1])));
}

/** Colours from the least value, or from nothing: then a cell without a point has none. */
function heatScale(values, { unit, from = least(values) }) {
  const max = most(values);
  return {
    min: from,
    max,
    dimension: 2,
    calculable: false,
    orient: 'horizontal',
    left: 'center',
    bottom: 0,
    itemWidth: 12,
    itemHeight: 160,
    precision: 2,
    text: [`${digits(max)} ${unit}`, from ? digits(from) : '0'],
    textStyle: { color: colour('text') },
    inRange: { color: [0, 1, 2, 3, 4].map((number) => colour(`ramp-${number}`)) },
  };
}

function heatSeries(points, { labels }, size) {
  return {
    type: 'heatmap',
    data: points,
    label: { show: labels, formatter: ({ value }) => digits(value[2]), color: 'inherit' },
    itemStyle: { borderColor: colour('page'), borderWidth: size <= 64 ? 1 : 0 },
    emphasis: { itemStyle: { borderColor: colour('text'), borderWidth: 2 } },
    progressive: 0,
  };
}

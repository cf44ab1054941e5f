// Charts in one frame: title, drawing, and the same values as a table.

/**
 * A figure. `option()` gives the chart library's option in the colours of the theme; `height` may be a function of the
 * figure's width. `values()` gives the table, left out where one stands below anyway; `clicked(event)` is called for a
 * click on a mark. `redraw()` of the figure draws it again.
 */
function picture({ title, about, height, option, values, clicked }) {
  const canvas = h('div', {
    class: 'drawing',
    role: 'img',
    'aria-label': `${title}. ${about ?? ''} The values stand in the table below.`,
  });
  const caption = h('figcaption', null, h('strong', null, title), about && h('span', null, about));
  const element = h('figure', null, caption, canvas);
  let chart = null;
  let width = 0;
  const paint = () => {
    canvas.style.height = `${typeof height === 'function' ? height(element.clientWidth) : height}px`;
    if (!chart) return;
    width = element.clientWidth;
    chart.resize();
    chart.setOption({ ...common(), ...option() }, { notMerge: true });
  };
  const start = () => {
    if (chart || !canvas.clientWidth) return;
    chart = echarts.init(canvas, null, { renderer: 'canvas' });
    chart.on('click', clicked);
    paint();
    new ResizeObserver(() => {
      if (element.clientWidth !== width) paint();
    }).observe(element);
  };
  if (values) element.append(folded('Values as a table', 'folded', values));
  paint();
  canvas.startDrawing = start;
  near.observe(canvas);
  onTheme(paint);
  element.redraw = paint;
  return element;
}

const near = new IntersectionObserver(
  (entries) => {
    for (const entry of entries.filter((item) => item.isIntersecting)) {
      near.unobserve(entry.target);
      entry.target.startDrawing();
    }
  },
  { rootMargin: '600px' },
);

addEventListener('beforeprint', () =>
  document.querySelectorAll('.drawing').forEach((element) => element.startDrawing()),
);

function common() {
  return {
    animation: false,
    backgroundColor: 'transparent',
    textStyle: { fontFamily: getComputedStyle(document.body).fontFamily, color: colour('text') },
    aria: { enabled: false },
  };
}

/** An axis with its name and unit in the place where they are read. */
function axis(name, extra = {}) {
  return {
    name,
    nameLocation: 'middle',
    nameGap: 28,
    nameTextStyle: { color: colour('muted'), fontSize: 12 },
    axisLabel: { color: colour('muted'), fontSize: 11, hideOverlap: true, ...extra.axisLabel },
    axisLine: { show: true, onZero: false, lineStyle: { color: colour('line-strong') } },
    axisTick: { show: false },
    splitLine: { show: true, lineStyle: { color: colour('line') } },
    minorSplitLine: { show: false },
    ...Object.fromEntries(Object.entries(extra).filter(([key]) => key !== 'axisLabel')),
  };
}

/** The tooltip; `content(parameters)` gives an element, never markup. */
function tooltip(content, extra = {}) {
  return {
    confine: true,
    transitionDuration: 0,
    backgroundColor: colour('panel'),
    borderColor: colour('line-strong'),
    padding: [6, 10],
    textStyle: { color: colour('text'), fontSize: 12 },
    extraCssText: 'max-width: min(30rem, 90vw); white-space: normal;',
    formatter: content,
    ...extra,
  };
}

/** Lines of a tooltip: the first is its title, the others are [name, value]. */
function lines(title, rows) {
  const swatch = (mark) => mark && h('i', { class: 'swatch', style: { background: mark } });
  const row = ([name, value, mark]) => h('tr', null, h('td', null, swatch(mark), name), h('td', { class: 'number' }, value));
  return h('div', { class: 'hover' }, h('strong', null, title), h('table', null, rows.map(row)));
}

function narrow() {
  return document.documentElement.clientWidth < 640;
}

/** A chart: a point is [row of its table, x, y, value of its colour or texts of its tooltip…]. `shown` says which series are. */
function drawChart(chart, shown = () => true) {
  const { title, about, id, height, square, series, targets, lost, rows, columns, beside } = chart;
  const follow = (row, number) => {
    const to = series?.[number]?.target ?? targets?.[row];
    if (typeof to === 'number') openDetails(to);
    else if (to) location.assign(to);
    else if (lost) say(`Record ${rows[row].find((_, place) => columns[place].kind === 'code')} ${lost}`);
  };
  const element = picture({
    title,
    about,
    height: square ? (width) => Math.min(width + 40, Math.max(300, 102 + square * 40)) : height,
    clicked: ({ data: { row, number } }) => follow(row, number),
    values: beside ? null : () => drawTable({ ...chart, id: null, caption: title }),
    option: () => chartOption(chart, shown),
  });
  if (id) element.id = id;
  return element;
}

function chartOption(chart, shown) {
  const { x, y, heat, wide, points, series = [{ points }], together, legend, levels = [] } = chart;
  const left = wide ? (narrow() ? 40 + 0.36 * wide : wide) : heat ? 56 : 62;
  const drawn = series.map((one, number) => [one, number]).filter(([one]) => shown(one));
  const line = { color: colour('text'), width: 1.5, opacity: 0.6 };
  return {
    grid: { left, right: 20, top: legend ? 40 : chart.marks ? 26 : 10, bottom: heat ? 92 : 44 },
    legend: legend && { type: 'scroll', top: 0, textStyle: { color: colour('text') }, itemHeight: 9 },
    xAxis: chartAxis(x, heat, false, left),
    yAxis: chartAxis(y, heat, true, left),
    visualMap: heat && heatScale(heat),
    tooltip: tooltip((hovered) => chartHover(chart, hovered), together && { trigger: 'axis', axisPointer: { type: 'line' } }),
    series: [
      ...drawn.map(([one, number]) => (heat ? heatSeries(points, heat, x.labels.length) : chartSeries(chart, one, number))),
      ...levels.map((ends) => ({ type: 'line', symbol: 'none', silent: true, tooltip: { show: false }, lineStyle: line, data: ends })),
    ],
  };
}

/** An axis of names or of numbers, of which `ticks` name some; one that has both ends shows only the numbers between them. */
function chartAxis({ name, labels, ticks, ...rest }, heat, vertical, left) {
  const names = { type: 'category', data: labels, splitLine: { show: false } };
  const long = { width: left - 10, overflow: 'truncate' };
  if (heat) {
    const placed = { nameGap: vertical ? 36 : 24, inverse: vertical, axisLabel: vertical ? long : {} };
    return axis(name, { ...names, ...placed, axisLine: { show: false } });
  }
  if (labels) return axis(name, names);
  const free = { type: 'value', scale: true, boundaryGap: ['12%', '12%'], nameGap: vertical ? 46 : 28 };
  const formatter = (value) => String(Number(value.toPrecision(4)));
  if (!ticks) {
    const bounded = vertical && 'min' in rest && 'max' in rest ? { showMinLabel: false, showMaxLabel: false } : {};
    return axis(name, { ...free, ...rest, axisLabel: { formatter, ...bounded } });
  }
  const customValues = ticks.map(([value]) => value);
  const words = { customValues, formatter: (value) => ticks.find(([at]) => at === value)?.[1] ?? '' };
  if (!vertical) return axis(name, { ...free, ...rest, axisTick: { show: true, customValues }, axisLabel: words });
  const axisLabel = { ...words, ...long, color: colour('text'), fontSize: 12 };
  return axis(name, { ...free, ...rest, axisLine: { show: false }, axisLabel });
}

/** Dots or a line in one colour; what is `hollow` is not filled, `ranges` are vertical lines, `bars` lie. */
function chartSeries({ targets, marks = [] }, { points, hollow = [], ranges = [], bars = [], colour: own, look }, number) {
  const tint = (row, open) => colour(own ?? (open || targets?.[row] === null ? 'muted' : 'accent'));
  const style = (row, open) =>
    open
      ? { color: 'transparent', borderColor: tint(row, true), borderWidth: 1.6 }
      : { color: tint(row), opacity: own && !look?.lineStyle ? 0.75 : 1 };
  const point = ([row, x, y, ...texts], place) => ({ value: [x, y], row, number, texts, itemStyle: style(row, hollow.includes(place)) });
  const range = ([x, low, high]) => [{ coord: [x, low] }, { coord: [x, high] }];
  const bar = ([y, low, high]) => [{ coord: [low, y], lineStyle: { width: 14 } }, { coord: [high, y] }];
  return {
    type: 'scatter',
    symbolSize: 8,
    showAllSymbol: true,
    ...look,
    itemStyle: own && { color: colour(own) },
    data: points.map(point),
    markLine: {
      symbol: 'none',
      silent: true,
      animation: false,
      label: { show: false },
      lineStyle: { width: 1.2, type: 'solid', opacity: 0.55 },
      data: [...(number ? [] : marks.map(chartMark)), ...ranges.map(range), ...bars.map(bar)],
    },
  };
}

function chartMark({ label, tone, dash, place = 'end', ...at }) {
  const tint = colour(tone);
  return {
    ...at,
    lineStyle: { color: tint, type: dash, width: 1.4, opacity: 1 },
    label: { show: Boolean(label), formatter: label, color: tint, position: place, fontSize: 11 },
  };
}

/** The row of a point; or its `named` cells, what `each` point says and its place on axes; or of several `together` a line each. */
function chartHover({ x, y, columns, rows, each, together }, hovered) {
  if (together) {
    const own = ({ seriesName, data: { texts }, color }) => [seriesName, texts[0], color];
    return lines(rows[hovered[0].data.row][0], hovered.map(own));
  }
  const { seriesName, data: { row, texts, value } } = hovered;
  const cell = ({ title, unit, kind }, place) => {
    const known = ![null, undefined, ''].includes(rows[row][place]) && (!each || !place || /named/.test(kind));
    return [title, known && [draw(rows[row][place]), unit && ` ${unit}`]];
  };
  const [[title, first], ...others] = columns.map(cell);
  const own = (each ?? []).map((name, place) => [name || seriesName, texts[place]]);
  const placed = [x, y].map(({ name, told }, axis) => [name, told && String(Number(value[axis].toPrecision(3)))]);
  return lines(h('span', null, each ? '' : `${title} `, first), [...own, ...placed, ...others].filter(([, text]) => text));
}

/** Colours between the ends of a scale. */
function heatScale({ ends: [min, max], text }) {
  return {
    min,
    max,
    dimension: 2,
    calculable: false,
    orient: 'horizontal',
    left: 'center',
    bottom: 0,
    itemWidth: 12,
    itemHeight: 160,
    text,
    textStyle: { color: colour('text') },
    inRange: { color: [0, 1, 2, 3, 4].map((number) => colour(`ramp-${number}`)) },
  };
}

function heatSeries(points, { labels }, size) {
  return {
    type: 'heatmap',
    data: points.map(([row, x, y, value, text]) => ({ value: [x, y, value], row, text })),
    label: { show: labels, formatter: ({ data: { text } }) => text, color: 'inherit' },
    itemStyle: { borderColor: colour('page'), borderWidth: size <= 64 ? 1 : 0 },
    emphasis: { itemStyle: { borderColor: colour('text'), borderWidth: 2 } },
    progressive: 0,
  };
}

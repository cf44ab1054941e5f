// STREAM: threads x CPU node x memory node as tables in colour, and every other placement as dots.

const KERNELS = ['triad', 'copy', 'scale', 'add'];

function streamSection() {
  const entries = data.entries.filter(
    (entry) => entry.valid && data.shared.benchmark[entry.benchmark].suite === 'stream' && entry.figures.length,
  );
  if (!entries.length) return absent('stream', 'STREAM', 'reframe -c reframe-tests -r -n stream');
  const kernels = [...new Set(entries.flatMap((entry) => entry.figures.map((figure) => figure.name)))].sort(
    (a, b) => rank(KERNELS, a) - rank(KERNELS, b),
  );
  const body = h('div');
  const show = (kernel) => body.replaceChildren(...streamParts(entries, kernel));
  show(kernels[0]);
  return section(
    'stream',
    'STREAM',
    'Memory bandwidth: the median over the launches of the rate that STREAM prints. Higher is better.',
    h('div', { class: 'filters' }, choice('Kernel', kernels, kernels[0], show)),
    body,
  );
}

function rank(list, item) {
  const place = list.indexOf(item);
  return place < 0 ? list.length : place;
}

/** A section that has no data says which test gives it. */
function absent(id, title, command) {
  return section(id, title, null, h('p', null, 'No data in this campaign. This gives it: ', h('code', null, command)));
}

function streamParts(entries, kernel) {
  const cells = entries
    .map((entry) => ({ entry, figure: entry.figures.find((figure) => figure.name === kernel) }))
    .filter((cell) => cell.figure);
  const matrix = cells.filter(({ entry }) => 'cpu_node' in entry.params && 'memory_node' in entry.params);
  const others = cells.filter((cell) => !matrix.includes(cell));
  return [
    matrix.length
      ? numaMatrices(matrix, kernel)
      : h(
          'p',
          null,
          'No matrix of CPU and memory nodes. This gives it: ',
          h('code', null, 'reframe -c reframe-tests -r -n stream_numa'),
        ),
    threadCurves(others, kernel),
    others.length ? streamDots(others, kernel).element : null,
  ].filter(Boolean);
}

/** One table per stack and thread count: rows are CPU nodes, columns memory nodes, all in one scale of colours. */
function numaMatrices(cells, kernel) {
  const values = cells.map((cell) => cell.figure.value);
  const [divisor, unit] = scaleOf(values, cells[0].figure.unit);
  const scale = { low: 0, high: most(values), divisor, unit }; // from nothing: else noise would fill the scale
  const groups = groupBy(cells, matrixKey);
  const threads = (key) => groups.get(key)[0].entry.params.threads ?? 0;
  const keys = [...groups.keys()].sort((a, b) => threads(a) - threads(b) || a.localeCompare(b));
  return h(
    'div',
    null,
    h('h3', null, `${kernel} by threads, CPU node and memory node`, h('span', { class: 'unit' }, ` ${unit}`)),
    legendOfScale(scale),
    h(
      'div',
      { class: 'matrices' },
      keys.map((key) => numaMatrix(key, groups.get(key), scale)),
    ),
  );
}

function matrixKey({ entry }) {
  const threads = entry.params.threads ?? '?';
  return `${entry.stackName}, ${threads} ${threads === 1 ? 'thread' : 'threads'}`;
}

function groupBy(items, key) {
  const groups = new Map();
  for (const item of items) {
    const group = groups.get(key(item));
    if (group) group.push(item);
    else groups.set(key(item), [item]);
  }
  return groups;
}

function numaMatrix(title, cells, scale) {
  const nodes = (name) => [...new Set(cells.map((cell) => cell.entry.params[name]))].sort((a, b) => a - b);
  const columns = nodes('memory_node');
  const head = h(
    'tr',
    null,
    h('th', { scope: 'col', class: 'corner' }, 'CPU node'),
    columns.map((node) => h('th', { scope: 'col' }, `memory ${node}`)),
  );
  const rows = nodes('cpu_node').map((node) =>
    h(
      'tr',
      null,
      h('th', { scope: 'row' }, node),
      columns.map((memory) =>
        numaCell(
          cells.find((cell) => cell.entry.params.cpu_node === node && cell.entry.params.memory_node === memory),
          scale,
        ),
      ),
    ),
  );
  return scrolling(
    title,
    h('table', { class: 'matrix' }, h('caption', null, title), h('thead', null, head), h('tbody', null, rows)),
  );
}

function numaCell(cell, scale) {
  if (!cell) return h('td', null, DASH);
  const button = opener(cell.entry, digits(cell.figure.value / scale.divisor));
  const bound = boundOf(cell.figure);
  const mark = bound?.mark ?? '';
  const limit = bound ? `, ${share(bound, 1)} % of ${{ c: 'ceiling', m: 'model' }[mark] ?? 'limit'}` : '';
  button.title = `${withUnit(cell.figure.value, cell.figure.unit)}${limit}, ${range(cell.figure)}`;
  const element = h(
    'td',
    { class: 'heat', 'data-value': String(cell.figure.value), 'data-record': cell.entry.id },
    button,
    bound && h('small', null, `${share(bound, 0)} %${mark}`),
  );
  const paint = () => {
    const fresh = ramp(position(cell.figure.value, scale));
    element.style.setProperty('background', css(fresh));
    element.style.setProperty('--ink', readable(fresh));
  };
  onTheme(paint);
  paint();
  return element;
}

function position(value, { low, high }) {
  return high > low ? (value - low) / (high - low) : 0.5;
}

function legendOfScale({ low, high, divisor, unit }) {
  return h(
    'div',
    { class: 'scale' },
    `${low ? digits(low / divisor) : 0} `,
    h('span', { class: 'ramp' }),
    ` ${digits(high / divisor)} ${unit}`,
  );
}

/** Lines over the number of threads, where some placement was measured with two or more. */
function threadCurves(cells, kernel) {
  const groups = threadGroups(cells);
  if (!groups.length) return null;
  const scale = scaleOf(
    cells.map((cell) => cell.figure.value),
    cells[0].figure.unit,
  );
  return picture({
    title: `${kernel} over threads`,
    about: 'Median of the launches. Colour: stack; mark and dash: placement.',
    height: 340,
    clicked: ({ data: point }) => openDetails(point.entry),
    values: () => threadTable(groups, kernel, scale),
    option: () => threadOption(groups, scale),
  }).element;
}

function threadGroups(cells) {
  const counted = cells.filter(({ entry }) => typeof entry.params.threads === 'number');
  const groups = groupBy(counted, ({ entry }) => `${entry.test} ${entry.placement} ${entry.stackName}`);
  return [...groups.values()]
    .map((group) => group.sort((a, b) => a.entry.params.threads - b.entry.params.threads))
    .filter((group) => new Set(group.map((cell) => cell.entry.params.threads)).size > 1);
}

function threadName([{ entry }]) {
  return `${entry.stackName}, ${entry.placement}`;
}

function threadTable(groups, kernel, [divisor, unit]) {
  const columns = [
    { title: 'stack and placement', head: true },
    { title: 'threads', number: true },
    { title: kernel, unit, number: true },
  ];
  const rows = groups.flatMap((group) =>
    group.map((cell) => [threadName(group), cell.entry.params.threads, digits(cell.figure.value / divisor)]),
  );
  return table(`${kernel} over threads`, columns, rows);
}

function threadOption(groups, [divisor, unit]) {
  const placements = [...new Set(groups.map(([{ entry }]) => entry.placement))];
  const style = ([{ entry }]) => placements.indexOf(entry.placement);
  return {
    grid: { left: 62, right: 16, top: 44, bottom: 44 },
    legend: { type: 'scroll', top: 0, textStyle: { color: colour('text') } },
    xAxis: axis('threads', { type: 'log', logBase: 2, min: 'dataMin', max: 'dataMax' }),
    yAxis: axis(unit, { type: 'value', nameGap: 44, min: 0 }),
    tooltip: tooltip(({ seriesName, data: point }) =>
      lines(seriesName, [
        ['threads', point.value[0]],
        ['median', withUnit(point.figure.value, point.figure.unit)],
        ['launches', range(point.figure)],
      ]),
    ),
    series: groups.map((group) => ({
      type: 'line',
      name: threadName(group),
      symbol: MARKS[style(group) % MARKS.length],
      symbolSize: 8,
      itemStyle: { color: stackColour(group[0].entry.stackName) },
      lineStyle: { type: DASHES[style(group) % DASHES.length] },
      data: group.map(({ entry, figure }) => ({
        value: [entry.params.threads, figure.value / divisor],
        entry,
        figure,
      })),
    })),
  };
}

/** Every launch of every placement: a row of dots, the bar is the median. */
function streamDots(cells, kernel) {
  const scale = scaleOf(
    cells.flatMap((cell) => cell.figure.samples),
    cells[0].figure.unit,
  );
  const labels = [...new Set(cells.map(dotsLabel))].sort((a, b) => b.localeCompare(a, 'en', { numeric: true }));
  const stacks = [...new Set(cells.map((cell) => cell.entry.stackName))].sort();
  return picture({
    title: `${kernel} by placement`,
    about: 'A dot per launch, a bar at the median. Colour: stack. Open dots: disturbed.',
    height: () => 84 + labels.length * Math.max(30, 13 * stacks.length),
    clicked: ({ data: point }) => openDetails(point.entry),
    values: () => dotsTable(cells, kernel, scale),
    option: () => dotsOption(cells, labels, stacks, scale),
  });
}

function dotsLabel({ entry }) {
  return `${entry.test.replace(/^stream_/, '')} ${entry.placed}`;
}

function dotsTable(cells, kernel, [divisor, unit]) {
  const columns = [
    { title: 'placement', head: true },
    { title: 'stack' },
    { title: 'median', unit, number: true },
    { title: 'launches', unit, number: true },
  ];
  const launches = (figure) =>
    figure.samples
      .filter((value) => value !== null)
      .map((value) => digits(value / divisor))
      .join('  ');
  const rows = cells.map((cell) => [
    opener(cell.entry, dotsLabel(cell)),
    cell.entry.stackName,
    digits(cell.figure.value / divisor),
    launches(cell.figure),
  ]);
  return table(`${kernel} by placement`, columns, rows);
}

function dotsOption(cells, labels, stacks, [divisor, unit]) {
  const step = 0.7 / stacks.length; // the stacks of a row stand one below the other
  const lane = (cell) =>
    labels.indexOf(dotsLabel(cell)) + (stacks.indexOf(cell.entry.stackName) - (stacks.length - 1) / 2) * step;
  const dots = (name) =>
    cells.filter((cell) => cell.entry.stackName === name).flatMap((cell) => dotsOf(cell, lane(cell), divisor, name));
  return {
    grid: { left: narrow() ? 110 : 210, right: 16, top: 34, bottom: 44 },
    legend: { top: 0, left: 0, data: stacks, textStyle: { color: colour('text') }, icon: 'circle', itemHeight: 9 },
    xAxis: axis(unit, { type: 'value', scale: true }),
    yAxis: laneAxis(labels, narrow() ? 100 : 200),
    tooltip: tooltip(({ data: point }) => dotsHover(point)),
    series: stacks.map((name) => ({
      type: 'scatter',
      name,
      itemStyle: { color: stackColour(name) },
      data: dots(name),
    })),
  };
}

function dotsHover({ cell, entry, launch, sample }) {
  const { unit, value } = cell.figure;
  const one = launch ? [[`launch ${launch.order}`, withUnit(sample, unit)]] : [];
  return lines(dotsLabel(cell), [
    ['stack', entry.stackName],
    ...one,
    ['median', withUnit(value, unit)],
    ...(launch?.causes ?? []).map((cause) => ['disturbed', cause]),
  ]);
}

function dotsOf(cell, lane, divisor, stack) {
  const { entry, figure } = cell;
  const tint = stackColour(stack);
  return [
    { value: [figure.value / divisor, lane], symbol: 'rect', symbolSize: [3, 13], entry, cell },
    ...figure.samples
      .map(
        (value, place) =>
          value !== null && {
            value: [value / divisor, lane],
            symbol: 'circle',
            symbolSize: 8,
            entry,
            cell,
            sample: value,
            launch: entry.launches[place],
            itemStyle: entry.launches[place]?.disturbed
              ? { color: 'transparent', borderColor: tint, borderWidth: 1.5 }
              : { color: tint, opacity: 0.75 },
          },
      )
      .filter(Boolean),
  ];
}

/** A vertical axis whose whole numbers are rows with names. */
function laneAxis(labels, width) {
  return {
    type: 'value',
    min: -0.5,
    max: labels.length - 0.5,
    interval: 1,
    axisLine: { show: false },
    axisTick: { show: false },
    splitLine: { show: true, lineStyle: { color: colour('line') } },
    axisLabel: {
      color: colour('text'),
      fontSize: 12,
      width,
      overflow: 'truncate',
      customValues: labels.map((_, number) => number),
      formatter: (value) => labels[value] ?? '',
    },
  };
}

// The heat map over pairs of cores.

function matrixSection() {
  if (!data.matrices.length) return absent('pairs', 'Core pairs', 'reframe -c reframe-tests -r -n pairs');
  const items = data.matrices.map((matrix, number) => ({
    ...matrix,
    number,
    of: data.entries[matrix.entry],
    middle: matrix.cells.map((cell) => median(cell.slice(3))),
  }));
  const body = h('div', { class: 'pictures pairs' });
  const name = (matrix) =>
    [matrix.metric, matrix.mode, matrix.of.stackName, matrix.of.nodes.join('+'), matrix.of.placed]
      .filter(Boolean)
      .join(', ');
  const show = (number) =>
    body.replaceChildren(matrixPicture(items[number], name(items[number])).element, classTable(items[number]));
  show(0);
  return section(
    'pairs',
    'Core pairs',
    'Every pair of ranks: the median over the launches. Ranks stand in their order, which is the order of the machine: neighbours side by side.',
    h(
      'div',
      { class: 'filters' },
      choice(
        'Matrix',
        items.map((matrix) => ({ key: String(matrix.number), label: name(matrix) })),
        '0',
        (number) => show(Number(number)),
      ),
    ),
    body,
  );
}

/** What people know an end of a pair by: its CPU, with the host where there are several; else its rank. */
function endNames(matrix) {
  const hosts = new Set(matrix.ends.map(([, , host]) => host));
  const cpus = matrix.ends.every(([, cpu]) => cpu !== null);
  return {
    axis: cpus ? 'CPU' : 'rank',
    of: new Map(
      matrix.ends.map(([rank, cpu, host]) => [rank, `${hosts.size > 1 ? `${host} ` : ''}${cpus ? cpu : rank}`]),
    ),
  };
}

function matrixPicture(matrix, name) {
  const scale = scaleOf(matrix.middle, matrix.unit);
  const names = endNames(matrix);
  return picture({
    title: `${name} between two ${names.axis}s`,
    about: `${scale[1]}; ${matrix.better} is better.`,
    height: (width) => Math.min(width + 40, Math.max(300, 102 + matrix.ends.length * 40)),
    clicked: () => openDetails(matrix.of),
    values: () => matrixTable(matrix, names, scale),
    option: () => matrixOption(matrix, names, scale),
  });
}

/** A point per pair and direction; what was measured in one direction stands for both. */
function matrixPoints(matrix, divisor) {
  const place = new Map(matrix.ends.map(([rank], number) => [rank, number]));
  const directed = new Set(matrix.cells.map(([first, second]) => `${first},${second}`));
  return matrix.cells.flatMap((cell, number) => {
    const [first, second] = cell;
    const value = matrix.middle[number] / divisor;
    const there = { value: [place.get(second), place.get(first), value], cell, number };
    return directed.has(`${second},${first}`)
      ? [there]
      : [there, { ...there, value: [place.get(first), place.get(second), value] }];
  });
}

function matrixOption(matrix, names, [divisor, unit]) {
  const points = matrixPoints(matrix, divisor);
  const size = matrix.ends.length;
  const ends = {
    type: 'category',
    data: [...names.of.values()],
    splitLine: { show: false },
    axisLine: { show: false },
  };
  return {
    grid: { left: 56, right: 16, top: 10, bottom: 92 },
    xAxis: axis(names.axis, { ...ends, nameGap: 24 }),
    yAxis: axis(names.axis, { ...ends, inverse: true, nameGap: 36 }),
    visualMap: matrixScale(points.map((point) => point.value[2]).filter(Number.isFinite), unit),
    tooltip: tooltip(({ data: point }) => matrixHover(matrix, names, point)),
    series: [
      {
        type: 'heatmap',
        data: points,
        label: { show: size <= 12, formatter: ({ value }) => digits(value[2]), color: 'inherit' },
        itemStyle: { borderColor: colour('page'), borderWidth: size <= 64 ? 1 : 0 },
        emphasis: { itemStyle: { borderColor: colour('text'), borderWidth: 2 } },
        progressive: 0,
      },
    ],
  };
}

function matrixScale(values, unit) {
  const [min, max] = [least(values), most(values)];
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
    precision: 2,
    text: [`${digits(max)} ${unit}`, digits(min)],
    textStyle: { color: colour('text') },
    inRange: { color: [0, 1, 2, 3, 4].map((number) => colour(`ramp-${number}`)) },
  };
}

function matrixHover(matrix, names, { cell, number }) {
  const [first, second, kind, ...values] = cell;
  const launches = values
    .filter((value) => value !== null)
    .map((value) => withUnit(value, matrix.unit))
    .join(', ');
  return lines(`${names.axis} ${names.of.get(first)} and ${names.of.get(second)}`, [
    ['ranks', `${first}, ${second}`],
    ['class', matrix.classes[kind] || 'unknown'],
    ['median', withUnit(matrix.middle[number], matrix.unit)],
    ['launches', launches],
  ]);
}

function classTable(matrix) {
  const groups = groupBy(
    matrix.cells.map((cell, number) => [cell[2], matrix.middle[number]]),
    ([kind]) => kind,
  );
  const [divisor, unit] = scaleOf(matrix.middle, matrix.unit);
  const rows = [...groups].map(([kind, cells]) => {
    const values = cells.map(([, value]) => value);
    return [
      matrix.classes[kind] || 'unknown',
      values.length,
      ...[least(values), median(values), most(values)].map((value) => digits(value / divisor)),
    ];
  });
  return table(
    `${matrix.metric} by class of the pair`,
    [
      { title: 'class', head: true },
      { title: 'pairs', number: true },
      ...['least', 'median', 'most'].map((title) => ({ title, unit, number: true })),
    ],
    rows,
  );
}

function matrixTable(matrix, names, [divisor, unit]) {
  const rows = matrix.cells.map((cell, number) => [
    `${names.of.get(cell[0])}, ${names.of.get(cell[1])}`,
    matrix.classes[cell[2]] || 'unknown',
    digits(matrix.middle[number] / divisor),
  ]);
  return table(
    'Every pair',
    [{ title: `${names.axis}s`, head: true }, { title: 'class' }, { title: 'median', unit, number: true }],
    rows,
  );
}

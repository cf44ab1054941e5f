// Curves over the message size, on logarithmic axes.

/** What the ping-pong pictures show, in this order, where it was measured. */
const PING_PONG = [
  ['IMB PingPong', 'latency'],
  ['IMB PingPong', 'bandwidth'],
  ['OSU latency', 'latency'],
  ['OSU bw', 'bandwidth'],
];
/** The order of a benchmark's pictures; other metrics come last. */
const METRICS = ['latency', 'time_avg', 'bandwidth', 'message_rate', 'overlap', 'time_pure'];
/** Where an empty message stands on an axis that has no zero. */
const EMPTY_AT = 0.5;

function curveSection() {
  const groups = groupBy(
    data.curves.map((curve) => ({ ...curve, of: data.entries[curve.entry] })),
    (curve) => [curve.benchmark, curve.metric, curve.mode].filter(Boolean).join(' · '),
  );
  const first = PING_PONG.map((words) => words.join(' · ')).filter((key) => groups.has(key));
  const rest = [...groups.keys()]
    .filter((key) => !first.includes(key))
    .sort(
      (a, b) =>
        a.split(' · ')[0].localeCompare(b.split(' · ')[0]) ||
        rank(METRICS, groups.get(a)[0].metric) - rank(METRICS, groups.get(b)[0].metric) ||
        a.localeCompare(b),
    );
  if (!groups.size) return absent('curves', 'Messages', 'reframe -c reframe-tests -r -n imb_pair -n osu_pair');
  return section(
    'curves',
    'Messages',
    'Time and bandwidth over the message size; a mark is the median of the launches, the line through it their range. An empty message stands at the left edge.',
    first.length
      ? curveGroup(groups, first, 'Ping-pong by distance of the two ranks')
      : h('p', null, 'No ping-pong. This gives it: ', h('code', null, 'reframe -c reframe-tests -r -n imb_pair')),
    rest.length ? otherCurves(groups, rest) : null,
  );
}

/** Some pictures with buttons, common to all, that show and hide stacks and placements. */
function curveGroup(groups, keys, title) {
  const curves = keys.flatMap((key) => groups.get(key));
  const stacks = [...new Set(curves.map((curve) => curve.of.stackName))].sort();
  const placements = [...new Set(curves.map((curve) => curve.of.placement))].sort(
    (a, b) => rank(data.distances, a) - rank(data.distances, b) || a.localeCompare(b),
  );
  const shown = { stacks: new Set(stacks), placements: new Set(placements) };
  const pictures = keys.map((key) => curvePicture(key, groups.get(key), placements, shown));
  const redraw = () => pictures.forEach((item) => item.redraw());
  const mark = (name) => h('i', { class: `mark mark-${placements.indexOf(name) % MARKS.length}` });
  return h(
    'div',
    null,
    title && h('h3', null, title),
    h(
      'div',
      { class: 'filters' },
      toggles(
        'Stack',
        stacks.map((name) => ({ key: name, label: ` ${name}`, mark: stackSwatch(name) })),
        shown.stacks,
        redraw,
      ),
      toggles(
        'Placement',
        placements.map((name) => ({ key: name, label: ` ${name}`, mark: mark(name) })),
        shown.placements,
        redraw,
      ),
    ),
    h(
      'div',
      { class: 'pictures' },
      pictures.map((item) => item.element),
    ),
  );
}

function otherCurves(groups, keys) {
  const place = h('div');
  const start = keys.find((key) => key.includes('Exchange') || key.includes('bcast')) ?? keys[0];
  const show = (benchmark) =>
    place.replaceChildren(
      curveGroup(
        groups,
        keys.filter((key) => key.split(' · ')[0] === benchmark),
        null,
      ),
    );
  show(start.split(' · ')[0]);
  return h(
    'div',
    null,
    h('h3', null, 'Other benchmarks'),
    h(
      'div',
      { class: 'filters' },
      choice('Benchmark', [...new Set(keys.map((key) => key.split(' · ')[0]))], start.split(' · ')[0], show),
    ),
    place,
  );
}

function curvePicture(key, curves, placements, shown) {
  const visible = () => curves.filter(({ of }) => shown.stacks.has(of.stackName) && shown.placements.has(of.placement));
  const [divisor, unit] = scaleOf(
    curves.flatMap((curve) => curve.y.flat()),
    curves[0].unit,
  );
  const metric = curves[0].metric.replaceAll('_', ' ');
  const logarithmic = curves.every((curve) => curve.y.flat().every((value) => value === null || value > 0));
  return picture({
    title: key.replaceAll('_', ' '),
    about: `${metric} in ${unit}; ${curves[0].better} is better.`,
    height: 330,
    clicked: ({ data: point }) => openDetails(point.curve.of),
    values: () => curveTable(key, visible(), divisor, unit),
    option: () => ({
      grid: { left: 62, right: 18, top: 12, bottom: 46 },
      xAxis: sizeAxis(curves.flatMap((curve) => curve.x)),
      yAxis: axis(`${metric}, ${unit}`, {
        type: logarithmic ? 'log' : 'value',
        nameGap: 46,
        axisLabel: { formatter: (value) => String(Number(value.toPrecision(3))) },
      }),
      tooltip: tooltip(curveHover(), {
        trigger: 'axis',
        axisPointer: { type: 'line', lineStyle: { color: colour('line-strong') } },
      }),
      series: visible().map((curve) => curveSeries(curve, placements, divisor)),
    }),
  });
}

/** From the smallest to the largest size, with a line at every third power of two. */
function sizeAxis(sizes) {
  const smallest = least(sizes) || EMPTY_AT;
  const largest = most(sizes);
  const marks = Array.from({ length: 14 }, (_, step) => 8 ** step).filter(
    (size) => size >= smallest && size <= largest,
  );
  if (smallest === EMPTY_AT) marks.unshift(EMPTY_AT);
  return axis('message size', {
    type: 'log',
    logBase: 2,
    min: smallest,
    max: largest,
    axisTick: { show: true, customValues: marks, lineStyle: { color: colour('line-strong') } },
    axisLabel: { customValues: marks, formatter: sizeLabel },
  });
}

function sizeLabel(value) {
  return value < 1 ? '0' : bytes(Math.round(value)).replace(' ', '\u202f');
}

function curveName(curve) {
  return `${curve.of.stackName}, ${curve.of.placed}`;
}

function curveSeries(curve, placements, divisor) {
  const number = placements.indexOf(curve.of.placement);
  const points = curve.x.map((size, place) => ({
    value: [size || EMPTY_AT, median(curve.y[place]) / divisor],
    size,
    samples: curve.y[place],
    curve,
  }));
  return {
    type: 'line',
    name: curveName(curve),
    symbol: MARKS[number % MARKS.length],
    symbolSize: 6,
    showAllSymbol: true,
    itemStyle: { color: stackColour(curve.of.stackName) },
    lineStyle: { width: 1.6, type: DASHES[number % DASHES.length] },
    emphasis: { focus: 'series' },
    data: points.filter((point) => Number.isFinite(point.value[1])),
    markLine: {
      symbol: 'none',
      silent: true,
      animation: false,
      label: { show: false },
      lineStyle: { width: 1.2, type: 'solid', opacity: 0.55 },
      data: points.flatMap((point) => ranges(point, divisor)),
    },
  };
}

/** The line from the smallest to the largest launch of a point, if they differ. */
function ranges({ value: [x], samples }, divisor) {
  const numbers = samples.filter((value) => typeof value === 'number');
  const [low, high] = [least(numbers) / divisor, most(numbers) / divisor];
  return low < high ? [[{ coord: [x, low] }, { coord: [x, high] }]] : [];
}

function curveHover() {
  return (found) =>
    lines(
      bytes(found[0].data.size),
      found.map(({ seriesName, data: point, color }) => {
        const numbers = point.samples.filter((value) => typeof value === 'number');
        const [shown, own] = human(median(numbers), point.curve.unit);
        const ends =
          numbers.length > 1
            ? ` (${human(least(numbers), point.curve.unit)[0]} … ${human(most(numbers), point.curve.unit)[0]})`
            : '';
        return [seriesName, `${shown} ${own}${ends}`, color];
      }),
    );
}

function curveTable(key, curves, divisor, unit) {
  const sizes = [...new Set(curves.flatMap((curve) => curve.x))].sort((a, b) => a - b);
  const columns = [
    { title: 'size', head: true, number: true },
    ...curves.map((curve) => ({ title: curveName(curve), unit, number: true })),
  ];
  const rows = sizes.map((size) => [
    bytes(size),
    ...curves.map((curve) => {
      const middle = median(curve.y[curve.x.indexOf(size)] ?? []);
      return Number.isFinite(middle) ? digits(middle / divisor) : DASH;
    }),
  ]);
  return table(`${key}: median of the launches`, columns, rows);
}

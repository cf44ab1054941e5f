// The gate: what it says of every series, and every pair that it measured.

function gateHead() {
  return [
    h('div', { class: 'title' }, h('h1', null, 'Gate: ', badge(data.verdict)), themeButton()),
    h('p', { id: 'closing' }, data.closing),
    h(
      'div',
      { class: 'tiles' },
      Object.entries(data.counts).map(([name, count]) => tile(count, name, name, VERDICTS[name][0])),
    ),
  ];
}

/** Four significant digits, and no zeros at the end. */
function short(ratio) {
  return String(Number(ratio.toPrecision(4)));
}

function seriesSection() {
  const columns = [
    { title: 'series', head: true, kind: 'test' },
    { title: 'verdict' },
    { title: 'ratio', number: true },
    { title: 'interval', number: true },
    { title: 'pairs', number: true },
    { title: 'measured again', number: true },
    { title: 'ruled out from', number: true },
    { title: 'reason', kind: 'notes' },
  ];
  return section(
    'series',
    'Series',
    `All series, the worst first. Ratio: candidate / baseline; each end of an interval is right with 99 %. ${data.margins}, where a series has no margins of its own.`,
    table('Series', columns, data.series.map(seriesRow)),
  );
}

function seriesRow(item, place) {
  return [
    item.ratios ? h('a', { href: `#pairs-${place}` }, item.name) : item.name,
    badge(item.verdict),
    item.ratio === null ? DASH : short(item.ratio),
    item.interval === null ? DASH : item.interval.map(short).join(' to '),
    item.pairs,
    item.again,
    item.ruled_out ?? DASH,
    item.reason ?? '',
  ];
}

function pairsSection() {
  const pictures = data.series.flatMap((item, place) => {
    if (!item.ratios) return [];
    const { element } = pairsPicture(item);
    element.id = `pairs-${place}`;
    return [element];
  });
  const without = data.series.length - pictures.length;
  return section(
    'pairs',
    'Pairs',
    'Every pair that was measured, in the order measured. Open dots: disturbed pairs, which were measured again and do not count.',
    h('div', { class: 'pictures' }, pictures),
    without > 0 &&
      h(
        'p',
        { class: 'note' },
        `${without} series without a picture: nothing that could be judged, or better than the ${pictures.length} worst.`,
      ),
  );
}

function pairsPicture(item) {
  return picture({
    title: item.name,
    about: `${item.verdict}. Above 1 is ${item.better === 'lower' ? 'slower' : 'faster'}. ${item.margins}; dotted line: judging stopped after ${plural(item.pairs, 'pair')}.`,
    height: 260,
    values: () => pairsTable(item),
    option: () => pairsOption(item),
  });
}

function pairsTable(item) {
  const rows = item.ratios.map((ratio, place) => [place + 1, place + 1, short(ratio), '']);
  rows.push(...item.superseded.map(([before, ratio]) => [before + 0.5, DASH, short(ratio), 'measured again']));
  rows.sort(([one], [other]) => one - other);
  const columns = [{ title: 'pair', head: true }, { title: 'candidate / baseline', number: true }, { title: 'note' }];
  return table(
    `Pairs of ${item.name}`,
    columns,
    rows.map(([, ...cells]) => cells),
  );
}

function pairsOption(item) {
  const shown = [...item.ratios, ...item.superseded.map(([, ratio]) => ratio), item.tolerance, item.must_detect, 1];
  const [low, high] = [least(shown), most(shown)];
  const room = Math.max(0.06 * Math.log(high / low), 1e-6);
  return {
    grid: { left: 62, right: 18, top: 26, bottom: 42 },
    xAxis: axis('pair', { type: 'value', min: 0, max: Math.max(item.ratios.length, data.first_look) + 1 }),
    yAxis: axis('candidate / baseline', {
      type: high / low > 3 ? 'log' : 'value',
      min: low * Math.exp(-room),
      max: high * Math.exp(room),
      nameGap: 46,
      axisLabel: { formatter: short, showMinLabel: false, showMaxLabel: false },
    }),
    tooltip: tooltip(({ data: point }) => lines(point.label, [['candidate / baseline', short(point.value[1])]])),
    series: [
      {
        type: 'scatter',
        symbolSize: 7,
        data: pairsPoints(item),
        markLine: { symbol: 'none', silent: true, data: pairsLines(item) },
      },
    ],
  };
}

function pairsPoints(item) {
  const kept = item.ratios.map((ratio, place) => ({
    value: [place + 1, ratio],
    label: `pair ${place + 1}`,
    itemStyle: { color: colour('accent') },
  }));
  const again = item.superseded.map(([before, ratio]) => ({
    value: [before + 0.6, ratio],
    label: 'disturbed, measured again',
    itemStyle: { color: 'transparent', borderColor: colour('muted'), borderWidth: 1.6 },
  }));
  return [...kept, ...again];
}

function pairsLines(item) {
  const line = (place, tint, type, formatter, position) => ({
    ...place,
    lineStyle: { color: colour(tint), type, width: 1.2 },
    label: { show: formatter !== '', formatter, color: colour(tint), position, fontSize: 11 },
  });
  return [
    line({ yAxis: 1 }, 'line-strong', 'solid', '', 'end'),
    line({ yAxis: item.tolerance }, 'warn', 'dashed', 'tolerated', 'insideStartTop'),
    line({ yAxis: item.must_detect }, 'bad', 'dashed', 'must be seen', 'insideEndTop'),
    line({ xAxis: item.pairs + 0.5 }, 'muted', 'dotted', '', 'end'),
  ];
}

function circumstancesSection() {
  const commands = data.facts.filter(([name]) => name === 'repeat');
  const rest = data.facts.filter(([name]) => name !== 'repeat');
  return section(
    'circumstances',
    'Circumstances',
    null,
    facts('Circumstances of this gate', rest),
    commands.map(([name, text]) => [h('h3', null, name), copied(name, text)]),
  );
}

layOut(gateHead(), [seriesSection(), pairsSection(), data.facts.length && circumstancesSection()].filter(Boolean));

// Series over sessions, with their change points.

const SHOWN = 40;

function historySection() {
  const { series, left_out: leftOutSeries, single } = data.history;
  const words = [
    single ? `${plural(single, 'series', 'series')} of one point ${single === 1 ? 'is' : 'are'} not shown.` : '',
    leftOutSeries ? `${leftOutSeries} more series are left out: plumb history shows them.` : '',
  ]
    .filter(Boolean)
    .join(' ');
  if (!series.length)
    return section('history', 'History', null, h('p', null, `No figure was measured in two sessions yet. ${words}`));
  const state = { chosen: series[0], text: '', all: false };
  const drawing = h('div', { class: 'pictures one' });
  const list = h('div');
  const show = (item) => {
    state.chosen = item;
    drawing.replaceChildren(historyPicture(item).element);
    fillList();
  };
  const fillList = () => list.replaceChildren(historyList(series, state, show, fillList));
  const search = h('input', {
    type: 'search',
    placeholder: 'test, stack, figure …',
    on: {
      input: () => {
        state.text = search.value;
        fillList();
      },
    },
  });
  show(series[0]);
  const changed = series.filter((item) => item.alarms.length).length;
  return section(
    'history',
    'History',
    `${plural(series.length, 'series', 'series')}, ${changed} with a change point. An alarm is a suspicion: measure again before calling anything slower. ${words}`,
    drawing,
    h('div', { class: 'filters' }, h('label', { class: 'choice' }, h('span', { class: 'label' }, 'Search'), search)),
    list,
    noteTable(),
  );
}

function historyList(series, state, show, again) {
  const words = state.text.toLowerCase().split(/\s+/).filter(Boolean);
  const matching = series.filter((item) =>
    words.every((word) => `${item.name} ${item.unit}`.toLowerCase().includes(word)),
  );
  const shown = state.all ? matching : matching.slice(0, SHOWN);
  const columns = [
    { title: 'series', head: true },
    { title: 'points', number: true },
    { title: 'last', number: true },
    { title: 'unit' },
    { title: 'last change' },
    { title: 'smallest slowdown it could see', number: true },
  ];
  const all = () => {
    state.all = true;
    again();
  };
  const more =
    shown.length < matching.length &&
    h('button', { type: 'button', on: { click: all } }, `Show all ${matching.length}`);
  return h(
    'div',
    null,
    table(
      'Series',
      columns,
      shown.map((item) => historyRow(item, item === state.chosen, show)),
    ),
    more,
  );
}

function historyRow(item, chosen, show) {
  const [, value] = item.points[item.points.length - 1];
  const button = h(
    'button',
    { type: 'button', class: 'opener', 'aria-pressed': String(chosen), on: { click: () => show(item) } },
    item.name,
  );
  const visible = item.smallest_visible === null ? 'too few points' : percent(item.smallest_visible);
  return [button, item.points.length + item.older, ...human(value, item.unit), changeText(item), visible];
}

function changeText(item) {
  const last = item.alarms[item.alarms.length - 1];
  if (!last) return DASH;
  return `${signed(last.ratio - 1)} ${last.direction} at ${String(last.index).slice(0, 12)}${item.alarms.length > 1 ? ` (${item.alarms.length} in all)` : ''}${notedText(last)}`;
}

function historyPicture(item) {
  const scale = scaleOf(
    item.points.map(([, value]) => value),
    item.unit,
  );
  const older = item.older ? ` ${item.older} older points are left out.` : '';
  return picture({
    title: item.name,
    about: `${item.better} is better. A dot per session, a line at the median between changes.${older}`,
    height: 300,
    clicked: ({ data: point }) => point.id && openRecord(point.id),
    values: () => historyTable(item, scale),
    option: () => historyOption(item, scale),
  });
}

function historyTable(item, [divisor, unit]) {
  const columns = [
    { title: 'time', head: true },
    { title: 'value', unit, number: true },
    { title: 'record' },
    { title: 'change' },
  ];
  return table(
    item.name,
    columns,
    item.points.map(([at, value, id]) => [time(at), digits(value / divisor), h('code', null, id), alarmText(item, id)]),
  );
}

function historyOption(item, [divisor, unit]) {
  const places = new Map(item.points.map(([, , id], place) => [id, place]));
  const sessions = item.points.map(([at]) => at.slice(0, 16).replace('T', ' '));
  const marks = [...item.alarms.map((alarm) => alarmLine(alarm, places)), ...noteLines(item)];
  return {
    grid: { left: 62, right: 24, top: 26, bottom: 44 },
    xAxis: axis('session', { type: 'category', data: sessions, splitLine: { show: false } }),
    yAxis: axis(`${item.key.figure}, ${unit}`, {
      type: 'value',
      scale: true,
      nameGap: 46,
      boundaryGap: ['12%', '12%'],
    }),
    tooltip: tooltip(({ data: point }) => historyHover(item, point)),
    series: [
      {
        type: 'scatter',
        symbolSize: 9,
        data: historyPoints(item, divisor),
        markLine: { symbol: 'none', silent: true, data: marks },
      },
      ...levels(item, places, divisor),
    ],
  };
}

function historyPoints(item, divisor) {
  return item.points.map(([at, value, id], place) => ({
    value: [place, value / divisor],
    at,
    raw: value,
    id,
    itemStyle: { color: colour(isHere(id) ? 'accent' : 'muted') },
  }));
}

/** A line at the median of the points between two changes. */
function levels(item, places, divisor) {
  const begins = [0, ...item.alarms.map((alarm) => places.get(alarm.index))];
  return begins.map((begin, number) => {
    const end = begins[number + 1] ?? item.points.length;
    const level = median(item.points.slice(begin, end).map(([, value]) => value)) / divisor;
    const lineStyle = { color: colour('text'), width: 1.5, opacity: 0.6 };
    return {
      type: 'line',
      symbol: 'none',
      silent: true,
      tooltip: { show: false },
      lineStyle,
      data: [
        [begin, level],
        [end - 1, level],
      ],
    };
  });
}

function historyHover(item, point) {
  const change = alarmText(item, point.id);
  return lines(time(point.at), [
    [item.key.figure, withUnit(point.raw, item.unit)],
    ['record', point.id],
    ...(change === DASH ? [] : [['change', change]]),
  ]);
}

function alarmLine(alarm, places) {
  const tint = colour(alarm.direction === 'worse' ? 'bad' : 'good');
  return {
    xAxis: places.get(alarm.index),
    lineStyle: { color: tint, type: 'dashed', width: 1.5 },
    label: { formatter: `${signed(alarm.ratio - 1)} ${alarm.direction}`, color: tint, position: 'end' },
  };
}

function alarmText(item, id) {
  const alarm = item.alarms.find((candidate) => candidate.index === id);
  return alarm ? `${signed(alarm.ratio - 1)} ${alarm.direction}${notedText(alarm)}` : DASH;
}

/** What people noted for the time of a change. */
function notedText(alarm) {
  return alarm.notes ? `, noted: ${alarm.notes.join('; ')}` : '';
}

/** A line at the first session after each note that falls between the first and the last session. */
function noteLines(item) {
  return data.history.notes.flatMap(([at, text]) => {
    const place = item.points.findIndex(([time]) => time >= at);
    if (place < 1) return [];
    const tint = colour('muted');
    const formatter = text.length > 32 ? `${text.slice(0, 31)}…` : text;
    const label = { formatter, color: tint, position: 'insideEndTop', fontSize: 11 };
    return [{ xAxis: place, lineStyle: { color: tint, type: 'dotted', width: 1.5 }, label }];
  });
}

/** The notes of the site as a table; nothing where there is none. */
function noteTable() {
  const { notes } = data.history;
  return (
    notes.length > 0 && [
      h('h3', null, 'Notes'),
      table(
        'Notes',
        [{ title: 'time', head: true, kind: 'whole' }, { title: 'what happened', kind: 'notes' }],
        [...notes].reverse().map(([at, text]) => [time(at), text]),
      ),
    ]
  );
}

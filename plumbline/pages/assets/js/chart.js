// One frame for every picture: title, drawing, and the same values as a table.

/**
 * A figure. `option()` gives the chart library's option in the colours of the theme; `height` may be a function of the figure's width.
 * `values()` gives the table, left out where one stands below anyway; `clicked(event)` is called for a click on a mark. `redraw()` of the answer draws it again.
 */
function picture({ title, about, height, option, values, clicked }) {
  const canvas = h('div', {
    class: 'drawing',
    role: 'img',
    'aria-label': `${title}. ${about ?? ''} The values stand in the table below.`,
  });
  const fold = h('div');
  const element = h(
    'figure',
    null,
    h('figcaption', null, h('strong', null, title), about && h('span', null, about)),
    canvas,
    fold,
  );
  let chart = null;
  let width = 0;
  const paint = () => {
    canvas.style.height = `${typeof height === 'function' ? height(element.clientWidth) : height}px`;
    if (!chart) return;
    width = element.clientWidth;
    chart.resize();
    chart.setOption({ ...common(), ...option() }, { notMerge: true });
  };
  const draw = () => {
    fold.replaceChildren(values ? folded('Values as a table', values) : '');
    paint();
  };
  const start = () => {
    if (chart || !canvas.clientWidth) return;
    chart = echarts.init(canvas, null, { renderer: 'canvas' });
    if (clicked) chart.on('click', clicked);
    paint();
    new ResizeObserver(() => {
      if (element.clientWidth !== width) paint();
    }).observe(element);
  };
  draw();
  whenNear(canvas, start);
  onTheme(paint);
  return { element, redraw: draw };
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

function whenNear(element, start) {
  element.startDrawing = start;
  near.observe(element);
}

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
  return h(
    'div',
    { class: 'hover' },
    h('strong', null, title),
    h(
      'table',
      null,
      rows.map(([name, value, mark]) =>
        h(
          'tr',
          null,
          h('td', null, mark && h('i', { class: 'swatch', style: { background: mark } }), name),
          h('td', { class: 'number' }, value),
        ),
      ),
    ),
  );
}

function narrow() {
  return document.documentElement.clientWidth < 640;
}

// A figure on one of several sides: its value, and how it stands to the first side.

/** `shown` is the value as text or node; `weak` marks a ratio that was found from launch to launch. */
function sideCell(shown, { best, claimed, ratio, low, high, weak }) {
  return [
    best && h('span', { class: 'glyph', title: 'best' }, '★ '),
    best ? h('strong', null, shown) : shown,
    ratio !== undefined &&
      small(`${weak ? '~' : ''}${digits(ratio)}${interval(low, high)}${claimed ? '' : '?'}`),
  ];
}

function interval(low, high) {
  return typeof low === 'number' ? ` [${digits(low)} ${digits(high)}]` : '';
}

function small(text) {
  return h('small', { class: 'under' }, text);
}

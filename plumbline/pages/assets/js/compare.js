// Several sides in one table: what differs besides them, then each figure on each side.

function compareHead() {
  return [
    h('div', { class: 'title' }, h('h1', null, data.title), themeButton()),
    h('p', { id: 'closing' }, data.closing),
  ];
}

function differsSection() {
  return section(
    'differs',
    'What differs too',
    'Circumstances that are not the same on all sides, besides what the sides were chosen by.',
    table(
      'What differs too',
      [{ title: 'circumstance', head: true }, ...data.sides.map((title) => ({ title, kind: 'notes' }))],
      data.circumstances,
    ),
  );
}

function figuresSection() {
  const columns = [
    { title: 'test', head: true, kind: 'test' },
    ...data.members.map((title) => ({ title })),
    { title: 'figure' },
    ...data.sides.map((title) => ({ title, number: true })),
  ];
  return section(
    'figures',
    'Figures',
    'The median over the sessions of each side, and its ratio to the first side that has the figure.',
    table('Figures by side', columns, data.lines.map(figureRow)),
    bullets(['★: best', ...data.legend], true),
  );
}

function figureRow({ name, placed, members, figure, unit, better, cells }) {
  const [factor, shown] = scaleOf(
    cells.map((cell) => cell?.value),
    unit,
  );
  return [
    [name, small(placed)],
    ...members,
    [figure, small(`${shown}, ${better} is better`)],
    ...cells.map((cell) => (cell ? [sideCell(digits(cell.value / factor), cell), basis(cell)] : DASH)),
  ];
}

/** What a value rests on. */
function basis({ sessions, launches, disturbed }) {
  const some = disturbed ? `, ${disturbed} disturbed` : '';
  return small(`${plural(sessions, 'session')}, ${plural(launches, 'launch', 'launches')}${some}`);
}

layOut(compareHead(), [data.circumstances.length && differsSection(), figuresSection()].filter(Boolean));

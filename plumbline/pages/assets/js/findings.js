// What a reader should know first: findings in words, then the stacks side by side.

function findingSection() {
  const items = data.findings.map(({ text, entry }) =>
    entry === null ? `${text}.` : opener(data.entries[entry], `${text}.`),
  );
  return section(
    'findings',
    'Findings',
    'What stands out in this campaign, by fixed rules.',
    items.length ? bullets(items, true) : h('p', null, 'Nothing stands out.'),
  );
}

function stackSection() {
  if (!data.stacks) return absent('stacks', 'Stacks side by side', 'make campaign');
  const { stacks, lines } = data.stacks;
  return section(
    'stacks',
    'Stacks side by side',
    'The first figure of each test on each stack, and its ratio to the first stack that has it.',
    table(
      'Figures by stack',
      [
        { title: 'test', head: true },
        { title: 'figure' },
        ...stacks.map((title) => ({ title, number: true })),
      ],
      lines.map(stackRow),
    ),
    h(
      'p',
      { class: 'note' },
      '★ best: no other stack is better, and some stack is worse. In brackets the interval of the ratio; ? where no ',
      'difference is seen. A stack of one session is compared by its launches alone: plumb compare, and docs/compare.md. ',
      'What a change costs is for plumb gate to say.',
    ),
  );
}

function stackRow({ name, placed, figure, unit, cells }) {
  const [factor, shown] = scaleOf(
    cells.map((cell) => cell?.value),
    unit,
  );
  return [
    [name, small(placed)],
    [figure, small(shown)],
    ...cells.map((cell) =>
      cell ? sideCell(opener(data.entries[cell.entry], digits(cell.value / factor)), cell) : DASH,
    ),
  ];
}

// Joules beside work, and the model's work beside what the processors counted.

function workSection() {
  const { rows, idle, missing } = data.work;
  const reasons = [...missing, ...idle.map((text) => `idle power of ${text}`)];
  return section(
    'work',
    'Energy and work',
    'Medians over the launches. Joules are those of the node from the start of a launch to its end, set-up included; ' +
      'work and counts are of what the program timed, on all ranks.',
    reasons.length > 0 && bullets(reasons, true),
    rows.length > 0 && workTable(rows),
    !reasons.length && !rows.length && h('p', null, 'No test of this campaign knows its work or its energy.'),
  );
}

const WORK_COLUMNS = [
  ['joules', 'energy', 'J'],
  ['watts', 'power', 'W'],
  ['gpu_joules', 'energy of GPUs', 'J'],
  ['per_gflop', 'per GFlop', 'J'],
  ['per_gbyte', 'per GB', 'J'],
  ['gflop', 'model', 'GFlop'],
  ['instructions', 'instructions', '10⁹'],
  ['per_cycle', 'a cycle', null],
  ['gbytes', 'model', 'GB'],
  ['missed_gbytes', 'not in the last cache', 'GB'],
];

/** A row per record; columns that no record has are left out. */
function workTable(rows) {
  const shown = WORK_COLUMNS.filter(([name]) => rows.some((row) => row[name] !== null));
  const columns = [
    { title: 'test', head: true },
    { title: 'stack' },
    { title: 'placement' },
    ...shown.map(([, title, unit]) => ({ title, unit, number: true })),
  ];
  return table(
    'Energy and work',
    columns,
    rows.map((row) => {
      const entry = data.entries[row.entry];
      const cells = shown.map(([name]) => (row[name] === null ? DASH : digits(row[name])));
      return [opener(entry, entry.name), entry.stackName, entry.placed, ...cells];
    }),
  );
}

// The best hybrid code against the best pure MPI code on the same nodes.

function hybridSection() {
  const title = 'Hybrid or pure MPI';
  if (!data.hybrids) {
    return absent('hybrids', title, 'reframe -c reframe-tests -r -S profile=full -n jacobi_modes');
  }
  const { notes, rows } = data.hybrids;
  const best = ({ entry, how }) => opener(data.entries[entry], how);
  return section(
    'hybrids',
    title,
    'The best hybrid code against the best pure MPI code, of one problem on the same nodes.',
    bullets(notes, true),
    table(
      'Best against best',
      [
        { title: 'test', head: true },
        { title: 'stack' },
        { title: 'best hybrid' },
        { title: 'best pure MPI' },
        { title: 'hybrid / pure', number: true },
        { title: '95 % interval', number: true },
        { title: 'verdict' },
      ],
      rows.map((row) => [
        row.problem,
        row.stack,
        best(row.hybrid),
        best(row.pure),
        digits(row.ratio),
        row.bounds,
        row.verdict,
      ]),
    ),
  );
}

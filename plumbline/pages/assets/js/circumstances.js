// Machines, stacks and programs of the campaign.

function circumstanceSection() {
  const { host, stack, benchmark, suite } = data.shared;
  return section(
    'circumstances',
    'Circumstances',
    'What the figures were measured on and with.',
    h('h3', null, plural(host.length, 'host state')),
    hostTable(host),
    h('h3', null, 'Stacks'),
    stackTable(stack),
    h('h3', null, 'Benchmarks'),
    benchmarkTable(benchmark),
    h('h3', null, 'Suite'),
    bullets(suite.map(suiteText)),
  );
}

function stackTable(stacks) {
  const columns = [
    { title: 'stack', head: true },
    { title: 'MPI' },
    { title: 'provider' },
    { title: 'compiler' },
    { title: 'manifest sha256' },
    { title: 'sources', kind: 'notes' },
  ];
  return table(
    'Stacks',
    columns,
    stacks.map((item) => [
      item.name,
      `${item.mpi.family} ${item.mpi.version}`,
      item.provider,
      `${item.compiler?.name ?? DASH} ${item.compiler?.version ?? ''}`,
      h('code', null, item.sha256.slice(0, 12)),
      folded(plural(item.sources.length, 'source'), () => bullets(item.sources.map(plain))),
    ]),
  );
}

/** A row per program; the same one may have been built for several stacks. */
function benchmarkTable(benchmarks) {
  const columns = [
    { title: 'suite', head: true },
    { title: 'version' },
    { title: 'program' },
    { title: 'sha256' },
    { title: 'built', kind: 'notes' },
  ];
  const programs = groupBy(benchmarks, (item) => `${item.sha256} ${item.built}`);
  return table(
    'Benchmarks',
    columns,
    [...programs.values()].map(([item]) => [
      item.suite,
      item.version,
      String(item.file).split('/').pop(),
      h('code', null, item.sha256.slice(0, 12)),
      item.built,
    ]),
  );
}

/** A column per state of a host; rows in which they differ come first and are marked. */
function hostTable(hosts) {
  const names = [...new Set(hosts.flatMap((host) => Object.keys(host)))];
  const differs = (name) => new Set(hosts.map((host) => plain(host[name]))).size > 1;
  const columns = [
    { title: 'fact', head: true },
    ...hosts.map((host, number) => ({
      title: `${host.hostname ?? 'host'}${hosts.length > 1 ? ` (${number + 1})` : ''}`,
      kind: 'notes',
    })),
  ];
  const ordered = [...names.filter(differs), ...names.filter((name) => !differs(name))];
  return table(
    'States of the hosts',
    columns,
    ordered.map((name) => [
      `${differs(name) ? '≠ ' : ''}${name.replaceAll('_', ' ')}`,
      ...hosts.map((host) => plain(host[name])),
    ]),
  );
}

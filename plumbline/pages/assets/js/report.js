// The page: head, sections, and what stands between them.

function pageHead() {
  const { counts } = data;
  const nodes = [...new Set(data.entries.flatMap((entry) => entry.nodes))];
  const commits = data.shared.suite.join('; ');
  return [
    h('div', { class: 'title' }, h('h1', null, 'Plumbline report'), themeButton()),
    facts('Campaign', [
      ['site', data.site],
      ['campaign', data.campaign ?? 'none: records made one by one'],
      ['measured', data.begin === data.end ? time(data.begin) : `${time(data.begin)} to ${time(data.end).slice(11)}`],
      [
        nodes.length === 1 ? 'node' : 'nodes',
        nodes.length > 6 ? `${nodes.slice(0, 6).join(', ')} and ${nodes.length - 6} more` : nodes.join(', '),
      ],
      ['suite', commits],
    ]),
    h(
      'div',
      { class: 'tiles' },
      tile(counts.variants, counts.variants === 1 ? 'variant' : 'variants'),
      tile(counts.verified, 'verified', counts.verified < counts.variants && 'warn'),
      data.severity
        .filter((name) => counts.verdicts[name])
        .map((name) => tile(counts.verdicts[name], name, name, VERDICTS[name][0])),
      tile(counts.launches, counts.launches === 1 ? 'launch' : 'launches'),
      tile(counts.disturbed, 'disturbed'),
      data.outcome && tile(skippedCount(), 'skipped'),
    ),
    h('p', { class: 'hidden-text', id: 'closing' }, data.closing),
  ];
}

function skippedCount() {
  return data.outcome.groups
    .filter((group) => group.state === 'SKIP')
    .reduce((sum, group) => sum + group.cases.length, 0);
}

function fillPage() {
  stackNames.push(...new Set(data.entries.map((entry) => entry.stackName)));
  stackNames.sort();
  const scripted = {
    overview,
    'left-out': leftOut,
    stream: streamSection,
    curves: curveSection,
    launches: launchSection,
  };
  const sections = data.sections.map((one) => (typeof one === 'string' ? scripted[one]() : draw(one)));
  layOut(pageHead(), sections);
  prepareDetails();
  openFromAddress();
  addEventListener('hashchange', openFromAddress);
}

fillPage();

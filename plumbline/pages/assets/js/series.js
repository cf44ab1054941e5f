// A published page: the series of one test over all campaigns.

/** Where the record of each point stands, as far as it is of a campaign. */
const places = new Map(
  data.history.series.flatMap(({ points }) => points.map(([, , id, number]) => [id, data.campaigns[number]])),
);

function isHere(id) {
  return places.get(id) !== undefined;
}

function openRecord(id) {
  const page = places.get(id);
  if (page) location.assign(`${page}#record-${id}`);
  else say(`Record ${id} is of no campaign: plumb show ${id}`);
}

layOut([h('div', { class: 'title' }, h('h1', null, data.test), themeButton())], [historySection()]);

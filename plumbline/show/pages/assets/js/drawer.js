// One record in a drawer: `data.entries` has what it shows of each.

/** A button that opens a record's drawer. */
function opener(number, text) {
  const attributes = { type: 'button', class: 'opener', 'aria-haspopup': 'dialog', 'data-record': data.entries[number].id };
  return h('button', { ...attributes, on: { click: () => openDetails(number) } }, text);
}

function openDetails(number) {
  const { id, title, head, body } = data.entries[number];
  const dialog = document.getElementById('details');
  const close = { type: 'button', class: 'close', 'aria-label': 'Close', on: { click: () => dialog.close() } };
  const names = h('div', null, h('h2', { id: 'details-title' }, title), h('p', null, draw(head)));
  const drawer = h('div', { class: 'drawer', tabindex: '-1' }, draw(body));
  dialog.replaceChildren(h('div', { class: 'drawer-head' }, names, h('button', close, '✕')), drawer);
  if (!dialog.open) dialog.showModal();
  drawer.scrollTop = 0;
  history.replaceState(null, '', `#record-${id}`);
}

function prepareDetails() {
  const dialog = document.getElementById('details');
  dialog.addEventListener('close', () => {
    history.replaceState(null, '', '#');
    dialog.replaceChildren();
  });
  dialog.addEventListener('click', (event) => {
    if (event.target === dialog) dialog.close();
  });
  addEventListener('hashchange', openFromAddress);
  openFromAddress();
}

function openFromAddress() {
  if (!location.hash.startsWith('#record-')) return;
  const number = (data.entries ?? []).findIndex(({ id }) => id.startsWith(location.hash.slice(8)));
  if (number >= 0) openDetails(number);
}

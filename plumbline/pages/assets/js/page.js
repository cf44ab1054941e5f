// A page that Python describes as a whole.

layOut(
  [h('div', { class: 'title' }, h('h1', null, data.heading ?? data.title), themeButton()), ...draw(data.head)],
  draw(data.sections),
);

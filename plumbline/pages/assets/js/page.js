// A page that Python describes as a whole.

layOut(
  [h('div', { class: 'title' }, h('h1', null, draw(data.heading ?? data.title)), themeButton()), ...draw(data.head ?? [])],
  draw(data.sections),
);

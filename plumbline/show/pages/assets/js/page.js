// A page: its head, a link to each section, the sections.

const steps = (data.trail ?? []).flatMap(([text, href]) => [h('a', { href }, text), ' › ']);
const sections = draw(data.sections);
const links = sections.map((item) => h('li', null, h('a', { href: `#${item.id}` }, item.querySelector('h2').textContent)));
const title = h('div', { class: 'title' }, h('h1', null, draw(data.heading ?? data.title)), themeButton());
document.getElementById('head').append(h('p', { class: 'trail' }, steps), title, ...h('div', null, draw(data.head ?? [])).childNodes);
document.getElementById('main').replaceChildren(...sections);
document.getElementById('sections').append(h('ul', null, links));
prepareDetails();
